"""Which kernel computes attention, as torch chooses it."""

from __future__ import annotations

from typing import Any

import pytest

from benchmodels.runtimes.parts.attention import attention_kernels

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def as_in_a_session() -> Any:
    """Whatever kernels a test of a benchmark has switched off in this process."""
    before = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(True)
    with torch.inference_mode():
        yield
    torch.backends.cuda.enable_flash_sdp(before)


def attend() -> Any:
    heads = torch.randn(1, 2, 16, 32)
    return torch.nn.functional.scaled_dot_product_attention(heads, heads, heads)


def test_the_kernel_is_the_one_that_torch_chooses_for_these_tensors() -> None:
    assert attention_kernels(attend) == ["flash"]
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert attention_kernels(attend) == ["math"]


def test_those_used_most_come_first() -> None:
    def mixed() -> None:
        attend()
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            attend()
            attend()

    assert attention_kernels(mixed) == ["math", "flash"]


def test_a_layer_computed_by_one_function_is_told_as_such() -> None:
    layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True).eval()
    assert attention_kernels(lambda: layer(torch.randn(1, 8, 32))) == ["fused encoder layer"]


def test_a_model_without_attention_has_no_kernel() -> None:
    assert attention_kernels(lambda: torch.nn.Linear(3, 3)(torch.randn(3))) == []
