"""Axes: where they begin and end, and round numbers to mark on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

MOST_TICKS = 5
_MOST_DIGITS = 6  # after the point; smaller numbers are written with an exponent
_FARTHEST = 8e307  # of an end, so that the length of an axis is a number
_ROUND = (1, 2, 2.5, 5, 10)
_LOGARITHMIC_FROM = 8.0  # times the least value; below, a linear axis shows the same values better
Ticks = tuple[tuple[float, str], ...]


def reach(values: Sequence[float], *, least: float = 0.0) -> tuple[float, float]:
    """From the least to the greatest finite value with some air; at least `least` wide."""
    finite = [v for v in values if math.isfinite(v)] or [0.0]
    low, high = min(finite), max(finite)
    half = max((high / 2 - low / 2) * 1.08, least / 2) or abs(low) * 0.05 or 1.0
    middle = low / 2 + high / 2
    return max(middle - half, -_FARTHEST), min(middle + half, _FARTHEST)


def wants_logarithm(values: Sequence[float]) -> bool:
    finite = [v for v in values if math.isfinite(v)]
    return bool(finite) and min(finite) > 0 and max(finite) / min(finite) >= _LOGARITHMIC_FROM


def ticks(low: float, high: float, words: Callable[[float], str] | None = None, most: int = MOST_TICKS) -> Ticks:
    """Round numbers from `low` to `high`, at most `most`, each as `words` writes it."""
    raw = (high - low) / most
    if not math.isfinite(raw) or raw <= 0:
        return ()
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in _ROUND if m * power >= raw * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    # Bounded: where neighbouring floats are farther apart than `step`, no mark would ever pass the end.
    marks = [v for v in ((first + i) * step for i in range(most + 2)) if v <= high + step * 1e-9]
    digits = max(0, -math.floor(math.log10(step) + 1e-9) + (step / power == 2.5))
    plain = f",.{digits}f" if digits <= _MOST_DIGITS else ".6g"
    return tuple((v + 0.0, words(v) if words else f"{v + 0.0:{plain}}") for v in marks)


def log_ticks(low: float, high: float, words: Callable[[float], str], most: int = MOST_TICKS) -> Ticks:
    """1, 2 and 5 times powers of ten; of too many, only some."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        marks = [m * 10.0**p for p in powers for m in factors if low <= m * 10.0**p <= high]
        if len(marks) <= most:
            break
    else:
        marks = marks[:: math.ceil(len(marks) / most)]
    return tuple((v, words(v)) for v in marks) if len(marks) > 1 else ticks(low, high, words, most)
