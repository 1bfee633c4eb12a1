"""From a ratio and its interval to a verdict or, without one, to the reason and the remedy."""

from __future__ import annotations

import math

import msgspec

from benchwright.analysis.comparison.alternation import ALTERNATE
from benchwright.core.comparison import Verdict
from benchwright.core.metric import Direction
from benchwright.core.summary import Interval

FEWEST_LAUNCHES = 6
_ROUNDING = 1e-12  # an end that is exactly 1 may be off by a few bits
_MOST_ADVISED = 200


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The basis of a verdict. `allowance`: what a difference must exceed besides 1 and the margin, as a logarithm.

    `wandered`: the allowance is how far a side's launches drifted on their own. `drift`: how far they were seen to drift,
    as a logarithm.
    """

    direction: Direction
    ratio: float
    interval: Interval
    p_value: float
    q_value: float
    comparisons: int  # in the table
    margin: float
    confidence: float
    launches: int  # of the side with fewer
    paired: bool
    allowance: float = 0.0
    wandered: bool = False
    drift: float = 0.0
    alternate: str = ALTERNATE  # how to measure both in one run

    @property
    def limit(self) -> float:
        """The margin as a logarithm: 2 % means from 1 / 1.02 to 1.02, the same from either side."""
        return math.log1p(self.margin)

    @property
    def distance(self) -> float:
        return abs(_log(self.ratio))

    @property
    def near_end(self) -> float:
        """The distance from 1 to the nearer end of the interval; negative if 1 lies inside."""
        return max(_log(self.interval.low), -_log(self.interval.high))

    @property
    def differs(self) -> bool:
        """Significant by itself: the interval excludes 1, which is the same as p ≤ 1 - confidence."""
        return self.near_end > _ROUNDING


def judged(e: Evidence) -> Verdict:
    """`same`: the whole interval is within the margin. `regressed`, `improved`: the difference is significant after
    correcting for all comparisons in the table, exceeds the allowance, and the ratio is outside the margin. Everything
    else is inconclusive.
    """
    if -e.limit <= _log(e.interval.low) and _log(e.interval.high) <= e.limit and e.drift <= e.limit:
        return Verdict.SAME
    proven = e.differs and e.q_value <= 1 - e.confidence and e.near_end > e.allowance
    if not proven or e.distance <= e.limit or e.direction is Direction.NEITHER:
        return Verdict.INCONCLUSIVE
    worse = (e.ratio > 1) is (e.direction is Direction.LOWER)
    return Verdict.REGRESSED if worse else Verdict.IMPROVED


def advice_for(e: Evidence) -> str:
    """Why an effect is inconclusive, and what would turn it into a verdict."""
    if e.differs and e.distance > e.limit:
        if e.q_value > 1 - e.confidence:
            return (
                f"significant by itself (p = {e.p_value:.2g}), but not among {e.comparisons} comparisons "
                f"(q = {e.q_value:.2g}); compare fewer metrics or use more launches"
            )
        if e.near_end <= e.allowance:
            return _not_beyond(e)
        if e.direction is Direction.NEITHER:
            return "it differs, but this metric has no better direction"
    if e.limit < e.distance <= e.allowance:
        return _not_beyond(e)
    return _more_launches(e)


def _not_beyond(e: Evidence) -> str:
    by = f"{math.expm1(e.allowance) * 100:.{0 if e.allowance > 0.1 else 1}f} %"
    if e.wandered:
        return f"launches of one side drifted by {by} on their own, so only larger differences count; {e.alternate}"
    return f"between separate runs only differences clearly above {by} count; {e.alternate}"


def _more_launches(e: Evidence) -> str:
    """The fewest launches it takes, which depends on the true difference."""
    if e.distance <= e.limit:  # the interval must fit into the margin
        needed = _needed(e, e.limit - e.distance)
        words = _launches(needed)
    else:  # it must exceed the allowance; or there may be no difference
        needed = _needed(e, e.distance - e.allowance)
        words = _launches(needed)
        none = _launches(_needed(e, e.limit))
        if not e.differs and e.limit and none != words:
            words = f"{words} if the difference is real, {none} if there is none"
    if needed <= _MOST_ADVISED:
        return f"needs {words}"
    other_ways = "a quieter machine" if e.paired else "a quieter machine, launches that alternate in one run"
    return f"needs {words}; {other_ways} or a larger margin would help"


def _needed(e: Evidence, wanted: float) -> float:
    """Launches for an interval with this half-width."""
    reach = (_log(e.interval.high) - _log(e.interval.low)) / 2
    too_close = wanted <= 0 or reach > wanted * _MOST_ADVISED
    return math.inf if too_close else max(e.launches * (reach / wanted) ** 2 * 1.2, e.launches + 2)


def _launches(needed: float) -> str:
    return f"more than {_MOST_ADVISED} launches" if needed > _MOST_ADVISED else f"--repeat {_even(needed)} or more"


def too_few(control: int, treatment: int) -> str:
    """The advice if one side has too few launches for any verdict."""
    side = f"{control} and {treatment} launches" if control != treatment else _counted(control)
    return f"too few launches for a verdict ({side}); use --repeat {FEWEST_LAUNCHES} or more for both"


def too_few_left(pairs: int) -> str:
    """If other pairs do not count."""
    return f"{pairs or 'none'} {'are' if pairs > 1 else 'is'} left, and a verdict takes {FEWEST_LAUNCHES}"


def _counted(launches: int) -> str:
    return "one launch a side" if launches == 1 else f"{launches} launches a side"


def _even(number: float) -> int:
    return 2 * math.ceil(number / 2)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
