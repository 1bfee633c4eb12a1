"""Outputs compared with golden ones, output by output: how far apart they are, and whether that is tolerated."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from benchmodels.check.array_files import ReadArray, UnreadableArray, read_array
from benchmodels.check.output_check import error_of
from benchmodels.types import Details

np = import_module("numpy")

# Errors of an output, and which way is better. A tolerance is the worst value that still passes.
ERRORS = {"max_abs": "lower", "relative_l2": "lower", "cosine": "higher", "top1": "higher", "top5": "higher"}
_PERCENTILES = (0, 10, 50, 90, 100)
_REAL = "biuf"


class GoldenError(NamedTuple):
    """How far one output is from its golden. `wrong`: why it fails; None: it passes. `figures`: by the names of ERRORS.

    `worst`: index, expected and actual value of the element that is furthest off.
    """

    output: str
    figures: Dict[str, float]
    wrong: Optional[str] = None
    worst: Optional[Details] = None
    statistics: Details = {}


def golden_errors(
    outputs: Mapping[str, Any], goldens: Mapping[str, str], tolerance: Mapping[str, float]
) -> List[GoldenError]:
    """Outputs of a model, by name, against the files of their goldens; an only output needs no name."""
    found = []
    for name, path in goldens.items():
        alone = len(outputs) == 1 and len(goldens) == 1
        got = outputs.get(name, next(iter(outputs.values())) if alone else None)
        if got is None:
            found.append(GoldenError(name, {}, f"the model has no such output; it has {', '.join(outputs)}"))
            continue
        try:
            found.append(golden_error(name, ReadArray(got), read_array(path, name), tolerance))
        except UnreadableArray as error:
            found.append(GoldenError(name, {}, f"the golden {path}: {error}"))
    return found


def golden_error(name: str, got: ReadArray, golden: ReadArray, tolerance: Mapping[str, float]) -> GoldenError:
    """Compares one output. What cannot be compared is wrong: another shape, NaN, infinity, nothing at all."""
    actual, wanted = np.asarray(got.values), np.asarray(golden.values)
    trouble = _trouble(got, golden)
    if trouble is not None:
        return GoldenError(name, {}, trouble)
    shape = wanted.shape if golden.shaped else actual.shape
    actual, wanted = (array.astype(np.float64).reshape(shape) for array in (actual, wanted))
    error = error_of(actual, wanted)
    if error.trouble is not None:
        return GoldenError(name, {}, error.trouble)
    known = {"max_abs": np.abs(actual - wanted).max(), "relative_l2": error.relative_l2, "cosine": error.cosine}
    figures = {key: float(value) for key, value in known.items() if value is not None}
    figures.update(_top(actual, wanted))
    worst = _worst(actual, wanted)
    return GoldenError(name, figures, _beyond(figures, tolerance, worst), worst, _statistics(actual, wanted))


def _trouble(got: ReadArray, golden: ReadArray) -> Optional[str]:
    actual, wanted = np.asarray(got.values), np.asarray(golden.values)
    for array, what in ((wanted, "the golden"), (actual, "the output")):
        if array.dtype.kind not in _REAL:
            return f"{what} holds no real numbers ({array.dtype})"
        bad = np.flatnonzero(~np.isfinite(array.astype(np.float64).reshape(-1)))
        if bad.size:
            where = _index(int(bad[0]), array.shape)
            return f"{what} is {array.reshape(-1)[bad[0]]} at {where}, and {bad.size} of its {array.size} numbers are not finite"
    both_shaped = got.shaped and golden.shaped
    if (actual.shape != wanted.shape) if both_shaped else (actual.size != wanted.size):
        if both_shaped:
            return f"the output's shape is {_words(actual.shape)}, the golden's {_words(wanted.shape)}"
        return f"the output has {actual.size} numbers, the golden {wanted.size}"
    return None if wanted.size else "there is nothing to compare: both are empty"


def _beyond(figures: Mapping[str, float], tolerance: Mapping[str, float], worst: Details) -> Optional[str]:
    for name, limit in tolerance.items():
        if name not in figures:
            return f"{name} is not known for this output, but a tolerance of {limit:g} is set"
        value = figures[name]
        beyond = value < limit if ERRORS[name] == "higher" else value > limit
        if beyond or math.isnan(value):
            side = "below" if ERRORS[name] == "higher" else "above"
            place = f"furthest off at {worst['index']}: {worst['expected']:.9g} expected, {worst['got']:.9g} found"
            return f"{name} {value:.6g} is {side} {limit:g}; {place}"
    return None


def _top(actual: Any, wanted: Any) -> Dict[str, float]:
    """Of each row along the last axis: whether the largest is the same, and the share of the five largest that are."""
    width = wanted.shape[-1] if wanted.ndim else 1
    rows, golden_rows = actual.reshape(-1, width), wanted.reshape(-1, width)
    found = {}
    if width > 1:
        found["top1"] = float(np.mean(rows.argmax(axis=1) == golden_rows.argmax(axis=1)))
    if width > 5:
        tops = [np.argsort(-each, axis=1, kind="stable")[:, :5] for each in (rows, golden_rows)]
        same = [len(set(a) & set(b)) / 5 for a, b in zip(tops[0].tolist(), tops[1].tolist())]
        found["top5"] = float(np.mean(same))
    return found


def _worst(actual: Any, wanted: Any) -> Details:
    place = int(np.abs(actual - wanted).reshape(-1).argmax())
    index = [int(i) for i in np.unravel_index(place, wanted.shape)] if wanted.ndim else []
    return {"index": index, "expected": float(wanted.reshape(-1)[place]), "got": float(actual.reshape(-1)[place])}


def _statistics(actual: Any, wanted: Any) -> Details:
    """Of the output, the golden and their difference, element by element."""
    arrays = {"summary": actual, "control_summary": wanted, "diff_summary": actual - wanted}
    return {name: _summary(array.reshape(-1)) for name, array in arrays.items()}


def _summary(values: Any) -> Dict[str, float]:
    middle = float(np.median(values))
    found = {f"p{p}": float(np.percentile(values, p)) for p in _PERCENTILES}
    mean, spread = float(values.mean()), float(values.std())
    found.update(mean=mean, stdev=spread, MAD=float(np.median(np.abs(values - middle))))
    return {**found, "cv": spread / mean} if mean else found


def _index(place: int, shape: Tuple[int, ...]) -> List[int]:
    return [int(i) for i in np.unravel_index(place, shape)] if shape else []


def _words(shape: Tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"
