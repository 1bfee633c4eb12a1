"""How much equal programs differ: the noise floor, from launches of one program that are compared as if they were two.

Launches that stand side by side share the machine's mood, so each pair of neighbours gives one ratio A ÷ B; their
logarithms are the sample. The floor is half the t interval of their mean: a difference below it cannot be told from none.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchwright.analysis.distributions import student_quantile
from benchwright.domain.checkup import Noise
from benchwright.domain.summary import Interval

FEWEST_PAIRS = 3
SIZES = (6, 12, 20)  # launches a side for which the smallest visible difference is told
_POWER = 0.8


def noise_of(
    metric: str, pairs: Sequence[tuple[float, float]], confidence: float = 0.95, sizes: Sequence[int] = SIZES
) -> Noise | None:
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
        detectable={size: detectable(deviation, size, confidence) for size in sizes},
    )


def detectable(deviation: float, launches: int, confidence: float = 0.95, power: float = _POWER) -> float:
    """The smallest slow-down, as a fraction, that `launches` pairs show with this power.

    `deviation` is the standard deviation of the logarithm of a pair's ratio. It is an estimate from few pairs itself, so
    this is good to about a third.
    """
    degrees = launches - 1
    # A one-sided quantile is the bound of the middle that leaves out as much on the other side.
    needed = student_quantile(confidence, degrees) + student_quantile(2 * power - 1, degrees)
    return math.expm1(needed * deviation / math.sqrt(launches))
