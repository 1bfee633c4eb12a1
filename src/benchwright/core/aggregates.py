"""Condensing the values of one launch to one number, by the method a metric names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from benchwright.core.columns import not_finite, ordered
from benchwright.core.errors import InvalidInput

WORKERS_VARIABLE = "DEEPLEARNING_WORKERS_COUNT"
_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d+)?)")


class AggregateError(ValueError):
    """The values cannot be condensed that way: there are none, or the number of workers is missing."""


def aggregate(method: str, values: Sequence[float], workers: int | None = None) -> float:
    """`values` condensed by `method`.

    A NaN among the values gives NaN, except for `first`, `last` and `count`. Percentiles interpolate linearly.
    `workers` (see `workers_count`) divides `total` unless it is None or 0, and multiplies `average_aggregate`, which
    requires it. AggregateError if there is no answer; for no values, only `count` and `total` have one.
    """
    if method == "count":
        return float(len(values))
    if not values and method != "total":
        raise AggregateError(f"'{method}' of no values")
    if method == "first":
        return float(values[0])
    if method == "last":
        return float(values[-1])
    if method == "total":
        return _sum(values) / (workers or 1)
    if method == "average_aggregate":
        return _average(values) * _needed(workers)
    simple = _SIMPLE.get(method)
    if simple is not None:
        return simple(values)
    match = _PERCENTILE.fullmatch(method)
    if match is None or float(match[1]) > 100:
        raise AggregateError(f"'{method}' is not a compute method")
    return percentile(values, float(match[1]))


@lru_cache(maxsize=256)
def has_answer(method: str, workers: int | None) -> bool:
    """Whether values can be condensed by `method`: one may need the number of workers, in a run without it."""
    try:
        aggregate(method, (1.0,), workers)
    except AggregateError:
        return False
    return True


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` % lie, with linear interpolation (numpy's default)."""
    if not_finite(values) and any(map(math.isnan, values)):
        return math.nan
    return percentile_of_ordered(ordered(values), percent)


def percentile_of_ordered(values: Sequence[float], percent: float) -> float:
    """`percentile` of sorted values without NaN."""
    place = (len(values) - 1) * percent / 100
    below = math.floor(place)
    low, high = float(values[below]), float(values[min(below + 1, len(values) - 1)])
    share = place - below
    # Not low + share × (high - low): the difference of two huge values overflows, that of two infinities is NaN.
    if share == 0 or low == high:
        return low
    return low * (1 - share) + high * share


def workers_count(environment: Mapping[str, str]) -> int | None:
    """The number of workers in `DEEPLEARNING_WORKERS_COUNT`; None if it is unset or 0."""
    text = environment.get(WORKERS_VARIABLE, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise InvalidInput(
            f"'{text}' is not a number of workers",
            where=WORKERS_VARIABLE,
            remedy="set it to a whole number, or unset it",
        )
    return int(text) or None


def _needed(workers: int | None) -> int:
    if not workers:
        raise AggregateError(f"'average_aggregate' needs the number of workers; set {WORKERS_VARIABLE} to 1 or more")
    return workers


def _sum(values: Sequence[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        # fsum rejects intermediate overflow and ∞ − ∞; plain floating point has an answer for both.
        return float(sum(values))


def _average(values: Sequence[float]) -> float:
    return _sum(values) / len(values)


def _extreme(choose: Callable[[Sequence[float]], float]) -> Callable[[Sequence[float]], float]:
    # Python's min and max skip or return a NaN, depending on its position.
    return lambda values: math.nan if any(map(math.isnan, values)) else float(choose(values))


_SIMPLE: dict[str, Callable[[Sequence[float]], float]] = {
    "average": _average,
    "median": lambda values: percentile(values, 50),
    "min": _extreme(min),
    "max": _extreme(max),
}
