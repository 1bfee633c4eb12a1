"""From a ratio with its interval to a verdict in one word, and what to do where there is none."""

from __future__ import annotations

import math

from benchwright.domain.comparison import Verdict
from benchwright.domain.metric import Direction
from benchwright.domain.summary import Interval

FEWEST_LAUNCHES = 6
_MOST_ADVISED = 200


def judged(
    direction: Direction, ratio: float, interval: Interval, q_value: float, *, margin: float, confidence: float
) -> Verdict:
    """`same`: the whole interval is within the margin. `regressed`, `improved`: the difference is no chance after all
    comparisons of the table are counted, and the ratio is beyond the margin. All else is inconclusive.

    The margin is a factor: 2 % means between 1 / 1.02 and 1.02, so that it is the same seen from either side.
    """
    limit = math.log1p(margin)
    low, high = _log(interval.low), _log(interval.high)
    if -limit <= low and high <= limit:
        return Verdict.SAME
    proven = q_value <= 1 - confidence and (low > 0 or high < 0)
    if not proven or abs(_log(ratio)) <= limit or direction is Direction.NEITHER:
        return Verdict.INCONCLUSIVE
    worse = (ratio > 1) is (direction is Direction.LOWER)
    return Verdict.REGRESSED if worse else Verdict.IMPROVED


def advice_for(
    direction: Direction,
    ratio: float,
    interval: Interval,
    q_value: float,
    *,
    launches: int,
    margin: float,
    confidence: float,
    paired: bool = False,
) -> str:
    """What would turn an inconclusive effect into a verdict."""
    limit, distance = math.log1p(margin), abs(_log(ratio))
    reach = (_log(interval.high) - _log(interval.low)) / 2
    away_from_one = _log(interval.low) > 0 or _log(interval.high) < 0
    if away_from_one and distance > limit:
        if q_value > 1 - confidence:
            return "alone it would count; among so many comparisons it may be chance: compare fewer metrics, or repeat more"
        if direction is Direction.NEITHER:
            return "it differs; whether that is better is not known for this metric"
    # Beyond the margin the interval must leave 1; within it, it must fit into the margin.
    wanted = distance if distance > limit else limit - distance
    too_close = reach > wanted * _MOST_ADVISED
    needed = math.inf if too_close else launches * (reach / wanted) ** 2 * 1.2
    if needed > _MOST_ADVISED:
        else_ways = "a quieter machine" if paired else "a quieter machine, interleaved launches"
        return f"more than {_MOST_ADVISED} launches would be needed: {else_ways} or a larger margin"
    return f"--repeat {_even(max(needed, launches + 2))} or more would probably tell"


def too_few(control: int, treatment: int) -> str:
    """What to say where one side has too few launches for any verdict."""
    side = f"{control} and {treatment} launches" if control != treatment else _counted(control)
    return f"{side} cannot tell chance from change; measure both with --repeat {FEWEST_LAUNCHES} or more"


def _counted(launches: int) -> str:
    return "one launch a side" if launches == 1 else f"{launches} launches a side"


def _even(number: float) -> int:
    return 2 * math.ceil(number / 2)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
