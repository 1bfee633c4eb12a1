"""How much equal programs differ: the noise floor, from launches of one program that are compared as if they were two.

Launches that stand side by side share the machine's mood, so each pair of neighbours gives one ratio A ÷ B; their
logarithms are the sample. The floor is half the t interval of their mean: a difference below it cannot be told from none.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchwright.analysis.comparison import DEFAULT_MARGIN
from benchwright.analysis.distributions import student_quantile
from benchwright.core.node.checkup import Noise
from benchwright.core.results.summary import Interval

FEWEST_PAIRS = 3
ENOUGH_PAIRS = 6  # for telling which difference would be seen
# For so many pairs: what a difference must be, in standard deviations of the logarithm of a pair's ratio, to be called by
# `compare_interleaved` in four of five cases, if that deviation is estimated from 6 pairs. Printed by performance/detectable.py.
_NEEDED = {6: 2.60, 12: 1.48, 20: 1.05}
SIZES = tuple(_NEEDED)
# … and by how many standard errors it must exceed the margin, for the same four of five: Student's t of 5 degrees at 80 %,
# and a little more because the middle of pairs is not known quite as well as their mean.
_BEYOND_MARGIN = 0.95


def noise_of(metric: str, pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> Noise | None:
    """From the seconds of pairs of neighbouring launches; None if they are too few or not all positive and finite."""
    values = [value for pair in pairs for value in pair]
    if len(pairs) < FEWEST_PAIRS or not all(math.isfinite(v) and v > 0 for v in values):
        return None
    ratios = [math.log(b / a) for a, b in pairs]
    middle, deviation = statistics.fmean(ratios), statistics.stdev(ratios)
    half = student_quantile(confidence, len(pairs) - 1) * deviation / math.sqrt(len(pairs))
    return Noise(
        metric=metric,
        median_s=statistics.median(values),
        launches=len(values),
        pairs=tuple(pairs),
        ratio=math.exp(middle),
        interval=Interval(math.exp(middle - half), math.exp(middle + half)),
        floor=math.expm1(half),
        spread=math.expm1(statistics.stdev(map(math.log, values))),
        detectable={size: detectable(deviation, size) for size in SIZES} if len(pairs) >= ENOUGH_PAIRS else {},
    )


def detectable(deviation: float, pairs: int) -> float:
    """The smallest slow-down, as a fraction, that comparing `pairs` pairs calls in four of five cases, at the usual margin.

    `deviation` is the standard deviation of the logarithm of a pair's ratio, estimated from 6 pairs.
    """
    beyond = math.log1p(DEFAULT_MARGIN) + _BEYOND_MARGIN * deviation / math.sqrt(pairs)
    return math.expm1(max(_NEEDED[pairs] * deviation, beyond))
