"""The noise floor: how much launches of one program differ when compared as if they were two programs.

Neighbouring launches see the same machine state, so each pair gives one ratio A ÷ B; their logarithms are the sample. The
floor is half the t interval of their mean: a smaller difference cannot be detected.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchwright.analysis.comparison.compare import DEFAULT_MARGIN
from benchwright.analysis.statistics.distributions import student_quantile
from benchwright.core.node.checkup import Noise
from benchwright.core.note import Note
from benchwright.core.results.summary import Interval

FEWEST_PAIRS = 3
ENOUGH_PAIRS = 6  # to say which difference could be detected
# Number of pairs → the difference, in standard deviations of the logarithm of a pair's ratio, that `compare_interleaved`
# detects in four of five cases, if that deviation is estimated from 6 pairs. Printed by performance/detectable.py.
_NEEDED = {6: 2.60, 12: 1.48, 20: 1.05}
SIZES = tuple(_NEEDED)
# … and how many standard errors it must exceed the margin by, for the same four of five: Student's t of 5 degrees at 80 %,
# and a little more because the median of the pairs is known less well than their mean.
_BEYOND_MARGIN = 0.95


def noise_of(metric: str, pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> Noise | None:
    """From the seconds of neighbouring launches, in pairs; None if there are too few or one is not positive and finite."""
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
    """The smallest slow-down, as a fraction, that `pairs` pairs detect in four of five cases, at the default margin.

    `deviation` is the standard deviation of the logarithm of a pair's ratio, estimated from 6 pairs.
    """
    beyond = math.log1p(DEFAULT_MARGIN) + _BEYOND_MARGIN * deviation / math.sqrt(pairs)
    return math.expm1(max(_NEEDED[pairs] * deviation, beyond))


_FINE, _BAD = 0.02, 0.10  # of the floor
_NAMES = {"process.duration": ("noise.wall", "wall time"), "process.cpu_time": ("noise.cpu", "CPU time")}


def judge_noise(noises: Sequence[Noise], *, busy: bool) -> list[Note]:
    """A note for each metric whose noise was measured; `busy`: other programs use the processor."""
    calm = [_NAMES[n.metric][1] for n in noises if n.floor < _BAD]
    return [_judge(noise, calm, busy) for noise in noises]


def _judge(noise: Noise, calm: Sequence[str], busy: bool) -> Note:
    kind, what = _NAMES[noise.metric]
    sizes = list(noise.detectable)
    seen = ", ".join(f"{_percent(noise.detectable[n])} with {'--repeat ' if n == sizes[0] else ''}{n}" for n in sizes)
    expected = f". `run -c A -c B` would show a difference of {seen} in 4 of 5 cases" if seen else ""
    text = f"noise floor ± {_percent(noise.floor)}; launches spread by {_percent(noise.spread)}{expected}"
    if noise.floor < _FINE:
        return Note(kind=kind, severity="ok", text=text)
    if noise.floor < _BAD:
        return Note(kind=kind, text=text, remedy="repeat launches, and interleave what you compare (`run -c A -c B`)")
    return Note(kind=kind, severity="error", text=text, remedy=_remedy(what, calm, busy))


def _percent(share: float) -> str:
    percent = 100 * share
    return f"{percent:.2f} %" if percent < 1 else f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def _remedy(what: str, calm: Sequence[str], busy: bool) -> str:
    if calm:
        return f"compare {calm[0]} instead of {what}, and " + ("stop other programs" if busy else "interleave")
    if busy:
        return "stop other programs first; until then no comparison is worth the time"
    return (
        "no program running here explains it: changing clocks, or other users of the same hardware; "
        "use a machine of your own, or many interleaved launches"
    )
