"""The outputs that all runtimes are checked against: the model's own, in eager mode, in float64.

In float32, and labelled so, if the model cannot run in float64 (it insists on float32, or memory is short) or computes
something else there (random numbers with its own seed, NaN).
"""

from __future__ import annotations

import copy
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from benchmodels.arrays import to_array
from benchmodels.check.output_check import (
    NOTHING_CLAIMED,
    OWN_ERRORS,
    TOLERANCES,
    Agreement,
    OutputError,
    compare,
    errors_of,
    has_other_shape,
)
from benchmodels.measure.memory import available_host_bytes
from benchmodels.pytorch.module_parts import ModuleState
from benchmodels.tensors import flatten_call, read_through, rebuilt_call, to_arrays
from benchmodels.types import Array, Arrays, Details, Module, Tensor, Value

np = import_module("numpy")

FLOAT64, FLOAT32 = "float64 eager", "float32 eager"
MEMORY_SHARE = 0.8  # of free memory that a reference may take
ROUNDING = 1e-5  # of the largest number: the error of a difference in float32
ALL_ROUNDING = 1e3  # this many times too large: the output is nothing but rounding noise


class Reference(NamedTuple):
    """`own`: the model's own error. `varies`: the difference between two identical calls, if more than rounding: then outputs
    cannot be judged. `note`: why it is not in float64. `keeps`: the state that calls change, so that a call may depend on
    earlier ones. `given_up_s`: computing it took longer than that, so there is none."""

    outputs: Arrays
    label: str
    own: List[OutputError]
    varies: Optional[float] = None
    note: Optional[str] = None
    keeps: Optional[str] = None
    given_up_s: Optional[float] = None


def reference_of(
    module: Module,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    as_called: Callable[[], ContextManager[Any]] = nullcontext,
) -> Reference:
    """Calls the module twice, and a copy of it in float64. Module and inputs stay as they are, except for state that calls
    change. Raises what the module raises. `as_called`: the region of autocast that its own error counts in."""
    state = ModuleState(module)
    own = eager = _called(module, args, kwargs, as_called)
    if as_called is not nullcontext:
        with as_called():
            own = call(module, args, kwargs)
    varies = difference(eager, _called(module, args, kwargs, as_called))
    keeps = state.changed()
    outputs, label, note = _exact(module, args, kwargs, eager)
    if len(outputs) != len(eager):
        outputs, label, note = eager, FLOAT32, "in float64 it returns a different number of outputs"
    elif label == FLOAT64 and _is_nan_only_there(outputs, eager):
        outputs, label, note = eager, FLOAT32, "in float64 it returns NaN"
    elif label == FLOAT64 and varies is None:
        scale = _largest([*eager.values(), *outputs.values(), *_arrays_of(args, kwargs)])
        outputs, label, note = _same_computation(module, args, kwargs, eager, outputs, scale)
    return Reference(outputs, label, errors_of(own, outputs), varies, note, keeps)


def _called(
    module: Module,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    as_called: Callable[[], ContextManager[Any]],
) -> Details:
    """Outside autocast, unless it runs only inside."""
    try:
        return call(module, args, kwargs)
    except RuntimeError:
        if as_called is nullcontext:
            raise
        with as_called():
            return call(module, args, kwargs)


def judged(calls: Sequence[Mapping[str, Any]], reference: Reference, precision: str) -> Agreement:
    """Whether the outputs of several calls with the same inputs are all right.

    Nothing is claimed for a model whose own calls differ. If only the runtime's calls differ, one wrong call is enough to fail.
    """
    found = [compare(outputs, reference.outputs, precision, reference.own) for outputs in calls]
    unclaimed = next((each for each in found if not each.claimed), found[0])
    worst = next((each for each in found if not each.ok), unclaimed)
    figures = {**worst.figures, "reference": reference.label}
    varies = reference.varies
    if varies is None and reference.keeps is not None and not found[0].ok and found[-1].ok:
        varies = difference(calls[0], calls[-1])  # the reference has the state after the calls
    if varies is not None and not any(_wrong_by_all_means(outputs, reference) for outputs in calls):
        figures["varies"] = varies
        why = f"; its calls change its '{reference.keeps}'" if reference.keeps is not None else ""
        text = (
            f"non-deterministic: two calls of the model with the same inputs differ by {varies:.2g} (relative L2){why}, "
            f"so {NOTHING_CLAIMED}"
        )
        return Agreement(True, text, figures, False)
    which = "" if worst is found[0] else f", in call {found.index(worst) + 1} with the same inputs"
    return Agreement(worst.ok, f"{worst.detail}{which} (reference: {reference.label})", figures, worst.claimed)


def _wrong_by_all_means(outputs: Mapping[str, Array], reference: Reference) -> bool:
    """NaN, a missing output, a shape that the model never returns: randomness does not explain these."""
    if len(outputs) != len(reference.outputs):
        return True
    any_shape = not any(_has_nan(array) for array in outputs.values())
    return any(
        error.trouble is not None and not (any_shape and has_other_shape(error) and has_other_shape(own))
        for error, own in zip(errors_of(outputs, reference.outputs), reference.own)
    )


def _is_nan_only_there(outputs: Mapping[str, Array], eager: Mapping[str, Array]) -> bool:
    """Such as where a mask of the lowest float64 overflows."""
    return any(_has_nan(found) and not _has_nan(own) for found, own in zip(outputs.values(), eager.values()))


def _has_nan(array: Array) -> bool:
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> Optional[float]:
    """The relative difference between the outputs of two identical calls; None: no more than rounding."""
    if len(first) != len(second):
        return 1.0
    worst = 0.0
    tolerance = TOLERANCES["fp32"]
    for error in errors_of(_without_shared_nan(first, second), _without_shared_nan(second, first)):
        if error.trouble is not None or error.unusable is not None:  # such as NaN in one of them
            return 1.0
        if error.equal is not None and error.equal < tolerance.equal:
            worst = max(worst, 1.0 - error.equal)
        if error.relative_l2 is not None and error.relative_l2 > tolerance.relative_l2:
            worst = max(worst, error.relative_l2)
    return worst or None


def _without_shared_nan(arrays: Mapping[str, Array], others: Mapping[str, Any]) -> Details:
    """Zeros where both have NaN."""
    return {
        name: np.where(np.isnan(array) & np.isnan(others[name]), 0, array)
        if name in others and array.dtype.kind in "fc" and array.shape == others[name].shape
        else array
        for name, array in arrays.items()
    }


def call(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value], dtype: Any = None) -> Details:
    """The outputs of one call in eager mode, with copies of the inputs, as arrays; `dtype`: the type that floats are cast to."""
    torch = import_module("torch")
    was_training = [part for part in module.modules() if part.training]
    try:
        module.eval()
    except NotImplementedError:  # a module that was exported has no modes
        was_training = []
    try:
        with torch.no_grad(), _floats_are(dtype):
            copied_args, copied_kwargs = rebuilt_call(args, kwargs, lambda tensor: _cast(tensor, dtype))
            return to_arrays(read_through(module(*copied_args, **copied_kwargs)))
    finally:
        for part in was_training:
            part.training = True


def _exact(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value], eager: Dict[str, Any]) -> Any:
    torch = import_module("torch")
    try:
        _refuse_without_memory(module, args, kwargs)
        exact = copy.deepcopy(module).double()
        return call(exact, args, kwargs, torch.float64), FLOAT64, None
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        note = f"float64 failed: {type(error).__name__}: {lines[0][:300]}"
    try:
        return _in_float32(module, args, kwargs, eager), FLOAT32, note
    except Exception:  # some models run only unchanged; `note` says why float64 failed
        return eager, "eager as it is", note


def _in_float32(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value], eager: Dict[str, Any]) -> Details:
    if _is_float32(module):
        return eager
    torch = import_module("torch")
    return call(copy.deepcopy(module).float(), args, kwargs, torch.float32)


def _same_computation(
    module: Module,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    eager: Dict[str, Any],
    exact: Dict[str, Any],
    scale: float,
) -> Any:
    """`exact`, unless it is so far from the model in float32 that a tolerance based on that error would accept anything."""
    if not any(_is_another(error, scale) for error in errors_of(eager, exact)):
        return exact, FLOAT64, None
    try:
        single = _in_float32(module, args, kwargs, eager)
    except Exception:  # nothing to compare with: float64 stays the reference
        return exact, FLOAT64, None
    another = [error for error in errors_of(single, exact) if _is_another(error, scale)]
    if len(single) != len(exact) or not another:
        return exact, FLOAT64, None
    return single, FLOAT32, f"in float64 it computes something else ({_error_text(another[0])})"


def _is_another(error: OutputError, scale: float) -> bool:
    """Whether an output comes from a different computation: rounding does not explain the difference."""
    if error.equal is not None:
        return OWN_ERRORS * (1 - error.equal) >= 1
    if error.relative_l2 is None:
        return has_other_shape(error)
    far = OWN_ERRORS * error.relative_l2 >= 1
    return far and error.relative_l2 < ALL_ROUNDING and error.max_abs > ROUNDING * scale


def _error_text(error: OutputError) -> str:
    if error.equal is not None:
        return f"{error.equal:.0%} of whole numbers are equal"
    return error.trouble or f"relative L2 {error.relative_l2:.2g} apart"


def _arrays_of(args: Sequence[Value], kwargs: Mapping[str, Value]) -> List[Any]:
    return [to_array(tensor) for _, tensor in flatten_call(args, kwargs)]


def _largest(arrays: Sequence[Array]) -> float:
    """The largest finite real number."""
    finite = [np.abs(array[np.isfinite(array)]) for array in arrays if array.dtype.kind == "f"]
    return max((float(each.max()) for each in finite if each.size), default=0.0)


def _refuse_without_memory(module: Module, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
    weights = [*module.parameters(), *module.buffers()]
    needed = 8 * sum(tensor.numel() for tensor in weights) + 8 * sum(t.numel() for _, t in flatten_call(args, kwargs))
    devices = {tensor.device for tensor in weights if tensor.device.type == "cuda"}
    if devices:
        torch = import_module("torch")
        free: Optional[int] = min(torch.cuda.mem_get_info(device)[0] for device in devices)
    else:
        free = available_host_bytes()
    if free is not None and needed > free * MEMORY_SHARE:
        raise MemoryError(f"it needs {needed / 1e9:.1f} GB more; {free / 1e9:.1f} GB are free")


def _is_float32(module: Module) -> bool:
    return all(str(tensor.dtype) == "torch.float32" for tensor in module.parameters() if tensor.is_floating_point())


def _cast(tensor: Tensor, dtype: Any) -> Any:
    copied = tensor.detach().clone()
    if dtype is None:
        return copied
    if copied.is_complex():
        return copied.to(dtype.to_complex())
    return copied.to(dtype) if copied.is_floating_point() else copied


@contextmanager
def _floats_are(dtype: Any) -> Iterator[None]:
    """Inside, tensors that the model creates have that type, as its weights do."""
    if dtype is None:
        yield
        return
    torch = import_module("torch")
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
