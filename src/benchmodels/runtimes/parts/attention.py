"""Which kernels compute a model's attention: torch chooses one by the shapes, the types and the device of each call."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Dict, List

# As `torch.nn.attention.SDPBackend` numbers them.
KERNELS = {0: "math", 1: "flash", 2: "memory-efficient", 3: "cudnn"}
# By what their operators are called; the last two are whole layers, where torch takes its fast path.
OPERATORS = {
    "_scaled_dot_product_attention_math": "math",
    "flash_attention": "flash",
    "efficient_attention": "memory-efficient",
    "cudnn_attention": "cudnn",
    "_transformer_encoder_layer_fwd": "fused encoder layer",
    "_native_multi_head_attention": "fused layer",
}


def attention_kernels(call: Callable[[], Any]) -> List[str]:
    """The kernels that `call` uses, those used most first; empty: it has no attention that torch knows as such."""
    torch = import_module("torch")
    mode = import_module("torch.utils._python_dispatch").TorchDispatchMode
    chosen_later = torch.ops.aten.scaled_dot_product_attention
    found: Dict[str, int] = {}

    class Noting(mode):  # type: ignore[valid-type,misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            operator = func._overloadpacket
            name = next((name for part, name in OPERATORS.items() if part in str(operator)), None)
            if operator is chosen_later:
                name = _chosen(torch, args, kwargs)
            if name is not None:
                found[name] = found.get(name, 0) + 1
            return func(*args, **kwargs)

    with Noting():
        call()
    return sorted(found, key=lambda name: -found[name])


def _chosen(torch: Any, args: Any, kwargs: Any) -> str:
    try:
        number = int(torch._fused_sdp_choice(*args, **kwargs))
    except Exception:  # that function is torch's own, and its arguments are not the same in every version
        return "unknown"
    return KERNELS.get(number, f"kernel {number}")
