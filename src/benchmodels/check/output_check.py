"""Checks outputs against a reference, output by output.

Each output's relative L2 error and cosine are judged separately, so that a large output does not hide a small wrong one;
the worst of each is reported. Whole numbers, such as an argmax, are judged by the share of equal ones.

The tolerance depends on the precision. Where the model itself, in eager mode, misses the reference by more than that
(`own`), four times its own error is allowed, up to a ceiling. Beyond the ceiling the model is ill-conditioned and its
outputs prove nothing: nothing is claimed. The same holds for outputs that any runtime would return: none, empty ones, the
same number everywhere, NaN of the model itself.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from benchmodels.types import Array, Details

np = import_module("numpy")

OWN_ERRORS = 4.0  # multiple of the model's own error that is tolerated
OTHER_SHAPE = "its shape is"
NO_NUMBER = 3.0e38  # references beyond the range of float32 mean infinity: masks use such numbers
NOTHING_CLAIMED = "nothing is claimed"
WHOLE = "whole"


class Tolerance(NamedTuple):
    """The limits for one output."""

    relative_l2: float
    cosine: float
    equal: float


TOLERANCES: Dict[str, Tolerance] = {
    "fp32": Tolerance(1e-4, 0.999, 0.99),
    "tf32": Tolerance(1e-2, 0.999, 0.95),
    "fp16": Tolerance(1e-2, 0.999, 0.95),
    "bf16": Tolerance(5e-2, 0.99, 0.95),
    "int8-weights": Tolerance(5e-2, 0.99, 0.95),
    "int8-dynamic": Tolerance(1e-1, 0.98, 0.90),
    "fp8-weights": Tolerance(1e-1, 0.98, 0.90),
    "int4-weights": Tolerance(2.5e-1, 0.95, 0.80),
}


# Not excused by the model's own error: the tolerance of the coarsest precision.
CEILING = TOLERANCES["int8-dynamic"]


class OutputError(NamedTuple):
    """How far one output is from its reference. Of whole numbers only `max_abs` and `equal` are known."""

    max_abs: float
    relative_l2: Optional[float] = None
    cosine: Optional[float] = None
    equal: Optional[float] = None
    trouble: Optional[str] = None  # why it is wrong, whatever the numbers
    mute: Optional[str] = None  # why it cannot tell right from wrong
    unusable: Optional[str] = None  # why it makes all outputs unjudgeable


class Agreement(NamedTuple):
    """`ok` and why. `figures`: max_abs, relative_l2, cosine, equal, tolerance, as far as known. Not `claimed`: nothing is
    known to be wrong or right."""

    ok: bool
    detail: str
    figures: Details
    claimed: bool = True


def compare(
    outputs: Mapping[str, Array],
    reference: Mapping[str, Any],
    precision: str,
    own: Optional[Sequence[OutputError]] = None,
) -> Agreement:
    """Compares arrays with those of the reference: by name, or in order if the names differ.

    `own`: the errors of the model itself, one for each output of the reference.
    """
    tolerance = TOLERANCES.get(precision, TOLERANCES["fp32"])
    if len(outputs) != len(reference):
        return Agreement(False, f"{len(outputs)} outputs where the reference has {len(reference)}", {}, False)
    if not reference:
        return Agreement(True, f"the model returns nothing that could be compared, so {NOTHING_CLAIMED}", {}, False)
    errors = errors_of(outputs, reference)
    owns = own if own and len(own) == len(errors) else [None] * len(errors)
    limits = [_limit(tolerance, each) for each in owns]
    figures = _figures(errors, limits)
    wrong = [w for w in map(_wrong, reference, errors, (_allowed(tolerance, each) for each in owns), owns) if w]
    if wrong:
        more = f" (and {len(wrong) - 1} more outputs)" if len(wrong) > 1 else ""
        return Agreement(False, f"{wrong[0]}{more}", figures, False)
    reason = _nothing_claimed(list(reference), errors, limits, owns)
    if reason is not None:
        return Agreement(True, f"{reason}, so {NOTHING_CLAIMED}", figures, False)
    return Agreement(True, _summary(figures, limits, tolerance), figures)


def is_rounding(found: Agreement) -> bool:
    """Whether a coarser arithmetic may explain what is wrong: every output is finite, and within the coarsest tolerance."""
    l2, cosine, equal = CEILING
    figures = found.figures
    near = figures.get("relative_l2", 0.0) <= l2 and figures.get("cosine", 1.0) >= cosine
    return "max_abs" in figures and near and figures.get("equal", 1.0) >= equal


def rounding_text(found: Agreement) -> str:
    figures = found.figures
    if "relative_l2" in figures:
        return f"{100 * figures['relative_l2']:.2g} %"
    return f"of {100 * (1 - figures['equal']):.2g} % of the whole numbers"


def _nothing_claimed(
    names: Sequence[str],
    errors: Sequence[OutputError],
    limits: Sequence[Tolerance],
    owns: Sequence[Optional[OutputError]],
) -> Optional[str]:
    """Why outputs that are not wrong cannot be called right; None: they can."""
    for name, error, limit, own in zip(names, errors, limits, owns):
        if error.unusable is not None:
            return f"{_output(name)}: {error.unusable}"
        if own is not None and own.trouble is not None:
            return f"{_output(name)} of the model itself does not agree with the reference: {own.trouble}"
        beyond = _wrong(name, error, limit, None)
        if beyond is not None:
            return f"the model is ill-conditioned ({beyond}; its own error in eager mode allows no better)"
    if all(error.mute is not None for error in errors):
        more = f", and none of the {len(errors) - 1} others does" if len(errors) > 1 else ""
        return f"{_output(names[0])} {errors[0].mute}: it cannot tell right from wrong{more}"
    return None


def errors_of(outputs: Mapping[str, Array], reference: Mapping[str, Any]) -> List[OutputError]:
    """One for each output of the reference; both have the same number."""
    by_name = set(outputs) == set(reference)
    pairs = [(outputs[n], reference[n]) for n in reference] if by_name else zip(outputs.values(), reference.values())
    return [error_of(np.asarray(got), np.asarray(wanted)) for got, wanted in pairs]


def error_of(got: Any, wanted: Any) -> OutputError:
    """The error of one array."""
    if got.shape != wanted.shape:
        return OutputError(math.inf, trouble=f"{OTHER_SHAPE} {_shape(got)}, that of the reference {_shape(wanted)}")
    if _sort(got) != _sort(wanted):
        return OutputError(math.inf, trouble=f"its type is {got.dtype}, that of the reference {wanted.dtype}")
    if not wanted.size:
        return OutputError(0.0, mute=f"is empty ({_shape(wanted)})")
    if _sort(wanted) == WHOLE:
        return _error_of_whole(got, wanted)
    return _error_of_real(got, wanted)


def has_other_shape(error: OutputError) -> bool:
    return error.trouble is not None and error.trouble.startswith(OTHER_SHAPE)


def _error_of_whole(got: Any, wanted: Any) -> OutputError:
    difference = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
    return OutputError(float(difference.max()), equal=float(np.mean(got == wanted)), mute=_constant(wanted))


def _error_of_real(got: Any, wanted: Any) -> OutputError:
    largest = _largest(got)
    got, wanted = _flat(got), _flat(wanted)
    nan = np.isnan(wanted)
    if (np.isnan(got) & ~nan).any():
        more = f", {_share(nan)} of the reference" if nan.any() else ", nothing of the reference"
        return OutputError(math.nan, trouble=f"{_share(np.isnan(got))} of it is NaN{more}")
    unusable = f"{_share(nan)} of it is NaN in the model itself" if nan.any() else None
    got, wanted = got[~nan], wanted[~nan]
    endless, wanted_endless = np.abs(got) >= largest, np.abs(wanted) >= NO_NUMBER
    if (endless != wanted_endless).any() or (np.sign(got[endless]) != np.sign(wanted[endless])).any():
        wrong = (endless != wanted_endless) | (endless & (np.sign(got) != np.sign(wanted)))
        return OutputError(
            math.inf, trouble=f"{_share(wrong)} of it is infinite where the reference is finite, or vice versa"
        )
    mute = _constant(wanted)
    got, wanted = got[~endless], wanted[~endless]
    if not wanted.size:
        return OutputError(0.0, mute="has no finite number", unusable=unusable)
    # Squares of large and small numbers stay in range.
    scale = float(max(np.abs(got).max(), np.abs(wanted).max())) or 1.0
    difference = got / scale - wanted / scale
    norm, norm_got, norm_difference = (float(np.linalg.norm(x)) for x in (wanted / scale, got / scale, difference))
    max_abs = float(np.abs(difference).max()) * scale
    if norm == 0.0:  # no relative error and no direction: the root mean square itself
        return OutputError(max_abs, norm_difference * scale / math.sqrt(wanted.size), mute=mute, unusable=unusable)
    cosine = float(np.dot(got / scale, wanted / scale)) / (norm * norm_got) if norm_got else 0.0
    return OutputError(max_abs, norm_difference / norm, max(-1.0, min(1.0, cosine)), mute=mute, unusable=unusable)


def _constant(wanted: Any) -> Optional[str]:
    """Whether it could be returned by chance: one number everywhere. A single number is no chance, unless it is 0 or a boolean."""
    if not wanted.size or not bool((wanted == wanted.flat[0]).all()):
        return None
    value = float(wanted.flat[0])
    telling = wanted.size == 1 and wanted.dtype.kind != "b" and value != 0
    return None if telling else f"is {value:g} everywhere"


def _allowed(tolerance: Tolerance, own: Optional[OutputError]) -> Tolerance:
    """For one output: the tolerance, or the model's own error, however large."""
    if own is None or own.trouble is not None:
        return tolerance
    l2, cosine, equal = tolerance
    if own.relative_l2 is not None:
        l2 = max(l2, OWN_ERRORS * own.relative_l2)
    if own.cosine is not None:
        cosine = min(cosine, 1 - OWN_ERRORS * (1 - own.cosine))
    if l2 >= 1:  # nothing but rounding noise
        cosine = -1.0
    if own.equal is not None:
        equal = min(equal, 1 - OWN_ERRORS * (1 - own.equal))
    return Tolerance(l2, cosine, equal)


def _limit(tolerance: Tolerance, own: Optional[OutputError]) -> Tolerance:
    """The same, up to the ceiling."""
    l2, cosine, equal = _allowed(tolerance, own)
    return Tolerance(
        min(l2, max(tolerance.relative_l2, CEILING.relative_l2)),
        max(cosine, min(tolerance.cosine, CEILING.cosine)),
        max(equal, min(tolerance.equal, CEILING.equal)),
    )


def _wrong(name: str, error: OutputError, limit: Tolerance, own: Optional[OutputError]) -> Optional[str]:
    if error.trouble is not None:
        return None if own is not None and _excused(error, own) else f"{_output(name)}: {error.trouble}"
    if error.equal is not None and error.equal < limit.equal:
        return f"{_output(name)}: {error.equal:.2%} of its whole numbers equal the reference; {limit.equal:.2%} needed"
    if error.relative_l2 is not None and error.relative_l2 > limit.relative_l2:
        return f"{_output(name)}: relative L2 error {error.relative_l2:.2g} exceeds {limit.relative_l2:.2g}"
    if error.cosine is not None and error.cosine < limit.cosine:
        return f"{_output(name)}: cosine {error.cosine:.5f} is below {limit.cosine:.5f}"
    return None


def _output(name: str) -> str:
    return "the output" if name == "output" else f"output {name}"


def _excused(error: OutputError, own: OutputError) -> bool:
    """Whether the model itself is no better; another shape, or NaN that it does not have, is never excused."""
    if own.trouble is None or has_other_shape(error):
        return False
    return math.isnan(own.max_abs) or not math.isnan(error.max_abs)


def _figures(errors: Sequence[OutputError], limits: Sequence[Tolerance]) -> Details:
    """The worst of each kind; a NaN is worse than any number."""
    figures: Details = {"tolerance": max(limit.relative_l2 for limit in limits)}
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
        text += "; tolerance raised to the model's own error in eager mode"
    return text


def _worst(values: Sequence[float]) -> float:
    return math.nan if any(math.isnan(v) for v in values) else max(values)


def _sort(array: Array) -> str:
    """Whole numbers (booleans included), real or complex."""
    return WHOLE if array.dtype.kind in "biu" else "complex" if array.dtype.kind == "c" else "real"


def _largest(array: Array) -> float:
    """Numbers of this type from here on count as infinite."""
    try:
        return min(float(np.finfo(array.dtype).max) * 0.999, NO_NUMBER)
    except ValueError:  # a type that numpy does not know
        return NO_NUMBER


def _flat(array: Array) -> Any:
    """As one row of float64; complex numbers as their two parts."""
    if array.dtype.kind == "c":
        array = np.ascontiguousarray(array.astype(np.complex128).reshape(-1)).view(np.float64)
    return array.astype(np.float64).reshape(-1)


def _shape(array: Array) -> str:
    return "×".join(map(str, array.shape)) or "scalar"


def _share(mask: Any) -> str:
    return f"{float(np.mean(mask)):.2%}"
