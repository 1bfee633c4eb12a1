"""A first call of a model with random weights, and what it takes for its outputs to be numbers that can be checked."""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple

from benchmodels.tensors import flatten
from benchmodels.types import Module, Tensor, Value
from benchmodels.zoo.base import fill_zeros

VANISHED = 1e-7  # the largest output: what is left of usual numbers that cancel out is rounding
TIE = 1e-5  # of the largest number: a choice between numbers as near as this depends on rounding
USUAL_ATTENTION = "sdpa"


class Called(NamedTuple):
    """`outputs`: the ones that hold real numbers. `tied`: whether the best of equal numbers were chosen."""

    outputs: List[Tensor]
    tied: bool


def repaired(torch: Any, model: Module, call: Mapping[str, Value]) -> None:
    """Calls it. The usual attention replaces one that returns NaN. If outputs vanish or choices are ties, those of two runtimes
    would differ, and both be right: layers that start as zero get random weights and norms variances; then, if that is
    not enough, all layers weights that keep the size of their inputs, such as those before a rounding to whole numbers."""
    found = _called(torch, model, call)
    if _has_nan(torch, found):
        _use_usual_attention(torch, model, call)
        return
    if _depends_on_rounding(found):
        fill_zeros(torch, model)
        _set_variances(model, call)
        found = _called(torch, model, call)
    if _depends_on_rounding(found):
        _keep_sizes(torch, model)
        _set_variances(model, call)


def _depends_on_rounding(found: Called) -> bool:
    return found.tied or bool(found.outputs and max(_largest(tensor) for tensor in found.outputs) < VANISHED)


def _called(torch: Any, model: Module, call: Mapping[str, Value]) -> Called:
    choices: List[bool] = []

    class Watch(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = function(*args, **(kwargs or {}))
            if getattr(function, "__name__", "") == "topk" and args and args[0].is_floating_point():
                choices.append(_is_tie(torch, args[0], *_count_and_dimension(args, kwargs or {})))
            return made

    with Watch():
        outputs = model(**call)
    numbers = [tensor for _, tensor in flatten(outputs) if tensor.is_floating_point() and tensor.numel()]
    return Called(numbers, any(choices))


def _count_and_dimension(args: Any, kwargs: Mapping[str, Any]) -> Any:
    count = args[1] if len(args) > 1 else kwargs["k"]
    return int(count), args[2] if len(args) > 2 else kwargs.get("dim", -1)


def _is_tie(torch: Any, numbers: Any, count: int, dimension: int) -> bool:
    """Whether the last number that is chosen is as large as the next one."""
    if not count < numbers.shape[dimension]:
        return False
    best = torch.sort(numbers, dim=dimension, descending=True).values
    last, following = (best.narrow(dimension, place, 1) for place in (count - 1, count))
    finite = torch.isfinite(last) & torch.isfinite(following)
    return bool(((last - following)[finite] <= TIE * last[finite].abs()).any())


def _largest(tensor: Any) -> float:
    return float(tensor.abs().max())


def _has_nan(torch: Any, found: Called) -> bool:
    return any(bool(torch.isnan(tensor).any()) for tensor in found.outputs)


def _use_usual_attention(torch: Any, model: Module, call: Mapping[str, Value]) -> None:
    """Some models read the mask of the plain attention as that of the usual one, which masks everything they should see."""
    before = model.config._attn_implementation
    if before == USUAL_ATTENTION or not getattr(model, "_supports_sdpa", False):
        return
    model.set_attn_implementation(USUAL_ATTENTION)
    if _has_nan(torch, _called(torch, model, call)):
        model.set_attn_implementation(before)


def _keep_sizes(torch: Any, model: Module) -> None:
    """The weights that transformers starts with are those of wide layers: narrow ones make the values ever smaller."""
    for part in model.modules():
        if isinstance(part, (torch.nn.Linear, torch.nn.modules.conv._ConvNd)):
            torch.nn.init.xavier_normal_(part.weight)


def _set_variances(model: Module, call: Mapping[str, Value]) -> None:
    """Batch norms, also those of a library's own, get a variance from this call; they start with 1 and normalise nothing.
    One for all channels: one each would make rounding errors large in a channel whose numbers are nearly the same."""

    def take(norm: Any, args: Any, kwargs: Any) -> None:
        norm.running_var.fill_(next(iter((*args, *kwargs.values()))).square().mean())

    norms = [part for part in model.modules() if getattr(part, "running_var", None) is not None]
    hooks = [norm.register_forward_pre_hook(take, with_kwargs=True) for norm in norms]
    try:
        if norms:
            model(**call)
    finally:
        for hook in hooks:
            hook.remove()
