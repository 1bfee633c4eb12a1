"""Whether outputs are right: held against a reference, output by output.

The relative L2 error and the cosine of each output are judged on their own, so that a large output does not hide a small
one that is wrong; what is told is the worst of each. The tolerance depends on the precision. Where the model as it was
written, in eager mode, misses the reference by more than that (`own`), nobody can be asked to do better: the limit is
then a few times its own error. Whole numbers, such as an argmax, are judged by the share of equal ones.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

np: Any = import_module("numpy")

OWN_ERRORS = 4.0  # so many times the model's own error is tolerated
OTHER_SHAPE = "its shape is"
NO_NUMBER = 3.0e38  # a reference beyond the range of float32 stands for infinity: masks are made of such numbers


class Tolerance(NamedTuple):
    """The most and the least that an output may have."""

    relative_l2: float
    cosine: float
    equal: float


TOLERANCES: Dict[str, Tolerance] = {
    "fp32": Tolerance(1e-4, 0.999, 0.99),
    "tf32": Tolerance(1e-2, 0.999, 0.95),
    "fp16": Tolerance(1e-2, 0.999, 0.95),
    "bf16": Tolerance(5e-2, 0.99, 0.95),
    "int8-dynamic": Tolerance(1e-1, 0.98, 0.90),
}


class OutputError(NamedTuple):
    """How far one output is from its reference. Of whole numbers only `max_abs` and `equal` are known."""

    max_abs: float
    relative_l2: Optional[float] = None
    cosine: Optional[float] = None
    equal: Optional[float] = None
    trouble: Optional[str] = None  # what makes it wrong whatever the numbers are


class Agreement(NamedTuple):
    """`ok` and why. `figures`: max_abs, relative_l2, cosine, equal, tolerance, as far as known."""

    ok: bool
    detail: str
    figures: Dict[str, Any]


def compare(
    outputs: Mapping[str, Any],
    reference: Mapping[str, Any],
    precision: str,
    own: Optional[Sequence[OutputError]] = None,
) -> Agreement:
    """Holds arrays against those of the reference: by name, or in their order where the names differ.

    `own`: the errors of the model as it was written, one for each output of the reference.
    """
    tolerance = TOLERANCES.get(precision, TOLERANCES["fp32"])
    if len(outputs) != len(reference):
        return Agreement(False, f"{len(outputs)} outputs where the reference has {len(reference)}", {})
    if not reference:
        return Agreement(False, "the model returns no tensor, so nothing can be checked", {})
    errors = errors_of(outputs, reference)
    limits = [_limit(tolerance, own[i] if own and len(own) == len(errors) else None) for i in range(len(errors))]
    figures = _figures(errors, tolerance, limits)
    wrong = [w for w in (_wrong(n, e, t) for n, e, t in zip(reference, errors, limits)) if w is not None]
    if wrong:
        more = f" (and {len(wrong) - 1} more outputs)" if len(wrong) > 1 else ""
        return Agreement(False, f"{wrong[0]}{more}", figures)
    return Agreement(True, _summary(figures, limits, tolerance), figures)


def errors_of(outputs: Mapping[str, Any], reference: Mapping[str, Any]) -> List[OutputError]:
    """One for each output of the reference; both hold as many."""
    by_name = set(outputs) == set(reference)
    pairs = [(outputs[n], reference[n]) for n in reference] if by_name else zip(outputs.values(), reference.values())
    return [error_of(np.asarray(got), np.asarray(wanted)) for got, wanted in pairs]


def error_of(got: Any, wanted: Any) -> OutputError:
    """Of one array against its reference."""
    if got.shape != wanted.shape:
        return OutputError(math.inf, trouble=f"{OTHER_SHAPE} {_shape(got)}, that of the reference {_shape(wanted)}")
    if _is_whole(got) != _is_whole(wanted):
        return OutputError(math.inf, trouble=f"its type is {got.dtype}, that of the reference {wanted.dtype}")
    if _is_whole(wanted):
        return _error_of_whole(got, wanted)
    return _error_of_real(got, wanted)


def has_other_shape(error: OutputError) -> bool:
    return error.trouble is not None and error.trouble.startswith(OTHER_SHAPE)


def _error_of_whole(got: Any, wanted: Any) -> OutputError:
    if not wanted.size:
        return OutputError(0.0, equal=1.0)
    difference = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    return OutputError(float(difference.max()), equal=float(np.mean(got == wanted)))


def _error_of_real(got: Any, wanted: Any) -> OutputError:
    largest = _largest(got)
    got, wanted = _flat(got), _flat(wanted)
    if np.isnan(wanted).any():
        return OutputError(math.nan, trouble="the model itself returns NaN")
    if np.isnan(got).any():
        return OutputError(math.nan, trouble=f"{_share(np.isnan(got))} of it is NaN, nothing of the reference")
    endless, wanted_endless = np.abs(got) >= largest, np.abs(wanted) >= NO_NUMBER
    if (endless != wanted_endless).any() or (np.sign(got[endless]) != np.sign(wanted[endless])).any():
        wrong = (endless != wanted_endless) | (endless & (np.sign(got) != np.sign(wanted)))
        return OutputError(
            math.inf, trouble=f"{_share(wrong)} of it is infinite where the reference is not, or not where it is"
        )
    got, wanted = got[~endless], wanted[~endless]
    if not wanted.size:
        return OutputError(0.0, 0.0, 1.0)
    scale = (
        float(max(np.abs(got).max(), np.abs(wanted).max())) or 1.0
    )  # squares of large and small numbers stay in range
    difference = got / scale - wanted / scale
    norm, norm_got, norm_difference = (float(np.linalg.norm(x)) for x in (wanted / scale, got / scale, difference))
    if norm == 0.0:  # nothing to be relative to: the root of the mean square itself
        relative_l2 = norm_difference * scale / math.sqrt(wanted.size)
        cosine = 1.0 if norm_got == 0.0 else 0.0
    else:
        relative_l2 = norm_difference / norm
        cosine = float(np.dot(got / scale, wanted / scale)) / (norm * norm_got) if norm_got else 0.0
    return OutputError(float(np.abs(difference).max()) * scale, relative_l2, max(-1.0, min(1.0, cosine)))


def _limit(tolerance: Tolerance, own: Optional[OutputError]) -> Tolerance:
    """The tolerance of one output."""
    if own is None or own.trouble is not None:
        return tolerance
    l2, cosine, equal = tolerance
    if own.relative_l2 is not None and own.cosine is not None:
        l2 = max(l2, OWN_ERRORS * own.relative_l2)
        cosine = min(cosine, 1 - OWN_ERRORS * (1 - own.cosine))
    if own.equal is not None:
        equal = min(equal, 1 - OWN_ERRORS * (1 - own.equal))
    return Tolerance(l2, cosine, equal)


def _wrong(name: str, error: OutputError, limit: Tolerance) -> Optional[str]:
    if error.trouble is not None:
        return f"output {name}: {error.trouble}"
    if error.equal is not None and error.equal < limit.equal:
        return f"output {name}: {error.equal:.2%} of its whole numbers are those of the reference, needed are {limit.equal:.2%}"
    if error.relative_l2 is not None and error.relative_l2 > limit.relative_l2:
        return f"output {name}: relative L2 error {error.relative_l2:.2g}, tolerated is {limit.relative_l2:.2g}"
    if error.cosine is not None and error.cosine < limit.cosine:
        return f"output {name}: cosine {error.cosine:.5f}, needed is {limit.cosine:.5f}"
    return None


def _figures(errors: Sequence[OutputError], tolerance: Tolerance, limits: Sequence[Tolerance]) -> Dict[str, Any]:
    """The worst of each kind; a NaN is worse than any number."""
    figures: Dict[str, Any] = {"tolerance": max(limit.relative_l2 for limit in limits)}
    figures["max_abs"] = _worst([error.max_abs for error in errors])
    l2s = [error.relative_l2 for error in errors if error.relative_l2 is not None]
    cosines = [error.cosine for error in errors if error.cosine is not None]
    equals = [error.equal for error in errors if error.equal is not None]
    if l2s:
        figures["relative_l2"] = _worst(l2s)
    if cosines:
        figures["cosine"] = min(cosines)
    if equals:
        figures["equal"] = min(equals)
    return {name: value for name, value in figures.items() if math.isfinite(value)}  # JSON has no other numbers


def _summary(figures: Mapping[str, Any], limits: Sequence[Tolerance], tolerance: Tolerance) -> str:
    words = [f"max abs error {figures['max_abs']:.2g}"] if "max_abs" in figures else []
    if "relative_l2" in figures:
        words.append(f"relative L2 {figures['relative_l2']:.2g}")
    if "equal" in figures:
        words.append(f"{figures['equal']:.2%} of whole numbers equal")
    text = ", ".join(words)
    if any(limit != tolerance for limit in limits):
        text += "; tolerated is what the model itself loses in eager mode, more than usual"
    return text


def _worst(values: Sequence[float]) -> float:
    return math.nan if any(math.isnan(v) for v in values) else max(values)


def _is_whole(array: Any) -> bool:
    return array.dtype.kind in "biu"


def _largest(array: Any) -> float:
    """From here on a number of this type counts as infinite."""
    try:
        return min(float(np.finfo(array.dtype).max) * 0.999, NO_NUMBER)
    except ValueError:  # a type that numpy itself does not know
        return NO_NUMBER


def _flat(array: Any) -> Any:
    """As one row of float64; complex numbers as their two parts."""
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array.astype(np.complex128).reshape(-1)).view(np.float64)
    return array.astype(np.float64).reshape(-1)


def _shape(array: Any) -> str:
    return "×".join(map(str, array.shape)) or "scalar"


def _share(mask: Any) -> str:
    return f"{float(np.mean(mask)):.2%}"
