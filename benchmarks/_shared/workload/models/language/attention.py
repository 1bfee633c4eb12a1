"""Attention through torch's one function for it, with a chosen kernel; and how models are built."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

M = TypeVar("M", bound=nn.Module)
# sdpa: torch chooses, but not cuDNN's kernel, which plans anew for every length and does not give the same answer twice.
KERNELS = ("sdpa", "math", "flash", "efficient", "cudnn")
FASTEST_IN_A_GRAPH = [
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
]


def use_kernel(name: str) -> None:
    """From here on attention is computed by the kernel called so, backward passes included; torch says so if it cannot be."""
    cuda = torch.backends.cuda  # torch keeps these there for all devices
    switches = {
        "math": cuda.enable_math_sdp,
        "flash": cuda.enable_flash_sdp,
        "efficient": cuda.enable_mem_efficient_sdp,
        "cudnn": cuda.enable_cudnn_sdp,
    }
    for kernel, switch in switches.items():
        switch(name == kernel or (name == "sdpa" and kernel != "cudnn"))


def counting() -> AbstractContextManager[Any]:
    """For counting arithmetic: the plain attention, which torch counts product by product on every device."""
    return sdpa_kernel(SDPBackend.MATH)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, causal: bool = False, dropout: float = 0.0
) -> Tensor:
    """All (batch, heads, length, width); keys and values may have fewer heads, each for several queries."""
    sharing = query.shape[1] // key.shape[1]
    together: dict[str, Any] = {}
    if sharing > 1:
        if query.shape[2] == 1 and not causal:
            # Of one position: the queries that share a key are taken for so many positions, and nothing is copied.
            batch, heads, _, width = query.shape
            found = functional.scaled_dot_product_attention(
                query.view(batch, heads // sharing, sharing, width), key, value, attn_mask=mask
            )
            return found.reshape(batch, heads, 1, width)
        if _flash_is_likely(query):
            together = {"enable_gqa": True}
        else:  # the other kernels want as many keys as queries
            key, value = key.repeat_interleave(sharing, 1), value.repeat_interleave(sharing, 1)
    return functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal, **together
    )


def attend_in_graph(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """`attend` for one position of each sequence, captured in a CUDA graph for this length. There cuDNN has planned already, and it is
    the fastest for keys that several queries share."""
    cuda = torch.backends.cuda
    if not _flash_is_likely(query) or not cuda.math_sdp_enabled():  # or a kernel was chosen
        return attend(query, key, value)
    with sdpa_kernel(FASTEST_IN_A_GRAPH, set_priority=True):
        return functional.scaled_dot_product_attention(query, key, value, enable_gqa=query.shape[1] != key.shape[1])


def _flash_is_likely(query: Tensor) -> bool:
    return query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and torch.backends.cuda.flash_sdp_enabled()


def build(make: Callable[[], M], device: torch.device, dtype: torch.dtype = torch.float32) -> M:
    """The model, made on the device and in the type it is to have: a large one exists once only."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            return make()
    finally:
        torch.set_default_dtype(before)


def initialise(model: nn.Module, deviation: float = 0.02) -> None:
    """As BERT, GPT-2 and Llama begin: weights from a narrow Gaussian, biases 0."""
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=deviation)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
