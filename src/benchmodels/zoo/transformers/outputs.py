"""A first call of a model with random weights, whose outputs should be numbers of a usual size, so that they can be checked."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping

from benchmodels.tensors import flatten
from benchmodels.types import Module, Tensor, Value

VANISHED = 1e-9  # the largest output: deep narrow layers made the values ever smaller
USUAL_ATTENTION = "sdpa"


def repaired(torch: Any, model: Module, call: Mapping[str, Value]) -> None:
    """Calls it. The usual attention replaces one that returns NaN; batch norms get statistics if the outputs vanish."""
    outputs = _called(model, call)
    if any(bool(torch.isnan(tensor).any()) for tensor in outputs):
        _use_usual_attention(torch, model, call)
    elif outputs and max(_largest(tensor) for tensor in outputs) < VANISHED:
        _set_statistics(torch, model, call)


def _called(model: Module, call: Mapping[str, Value]) -> List[Tensor]:
    """Its outputs that hold real numbers."""
    found: Dict[str, Any] = dict(flatten(model(**call)))
    return [tensor for tensor in found.values() if tensor.is_floating_point() and tensor.numel()]


def _largest(tensor: Any) -> float:
    return float(tensor.abs().max())


def _use_usual_attention(torch: Any, model: Module, call: Mapping[str, Value]) -> None:
    """Some models read the mask of the plain attention as that of the usual one, which masks everything they should see."""
    before = model.config._attn_implementation
    if before == USUAL_ATTENTION or not getattr(model, "_supports_sdpa", False):
        return
    model.set_attn_implementation(USUAL_ATTENTION)
    if any(bool(torch.isnan(tensor).any()) for tensor in _called(model, call)):
        model.set_attn_implementation(before)


def _set_statistics(torch: Any, model: Module, call: Mapping[str, Value]) -> None:
    """Batch norms get the means and variances of this call, as training gives them. They start as 0 and 1 and normalise nothing."""
    norms = [part for part in model.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    try:
        model(**call)
    except ValueError:  # one value per channel has no variance: the statistics stay as they were from there on
        pass
    finally:
        model.eval()
        for norm, momentum in zip(norms, momenta):
            norm.momentum = momentum
