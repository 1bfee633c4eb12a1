"""Whether a loop delivers the rate of its median step, and if not, why.

A loop that waits for data now and then, or pauses, delivers less than its median step promises.
"""

from __future__ import annotations

import math
from array import array

from benchwright.core.note import Note
from benchwright.core.numbers.columns import above, difference, median, ordered
from benchwright.core.numbers.quantities import format_duration
from benchwright.record.loops.steps import Steps

NOTEWORTHY = 0.02  # a smaller difference needs no note
_SLOW = 2.0  # times the median: a slow step
_PAUSE = 10.0  # times the median: a pause, not a step


def uneven_pace(loop: str, steps: Steps, median_rate: float, rate: float) -> Note | None:
    """`rate` is items over time, `median_rate` that of the median step; None if they agree."""
    if rate <= 0 or abs(median_rate / rate - 1) <= NOTEWORTHY:
        return None
    reason, figure = _reason(steps)
    less = "less" if median_rate > rate else "more"
    text = f"loop '{loop}' delivers {less} than its median step would, because of {reason}"
    return Note(text=text, evidence=figure)


def _reason(steps: Steps) -> tuple[str, str]:
    """In words, and with its figures."""
    if _waits_explain(steps):
        return "waits for data", f"{_percent(steps.waiting_s / steps.total_s)} of the time"
    usual = median(steps.seconds)
    slower = above(steps.seconds, usual)
    excess = sum(slower) - usual * len(slower)
    longest = max(steps.seconds)
    if longest > _PAUSE * usual and longest - usual > excess / 2:
        return "a pause", f"one step of {format_duration(longest)}, usually {format_duration(usual)}"
    slow = above(slower, _SLOW * usual)
    if sum(slow) - usual * len(slow) > excess / 2:  # a few slow steps explain little if all steps differ
        share, time = len(slow) / len(steps), sum(slow) / steps.total_s
        return "slow steps", f"{_percent(share)} of them take {_percent(time)} of the time"
    in_order = ordered(steps.seconds)
    tenth = len(in_order) // 10
    ends = " to ".join(format_duration(seconds) for seconds in (in_order[tenth], in_order[-1 - tenth]))
    return "bursts", f"most steps take {ends}"


def _waits_explain(steps: Steps) -> bool:
    """Whether the difference all but vanishes without the waits for data."""
    computing = difference(steps.seconds, steps.waits)
    if steps.waiting_s < NOTEWORTHY / 2 * steps.total_s or min(computing) <= 0:
        return False
    with_waits, without = _spread(steps.seconds), _spread(computing, overwrite=True)
    return abs(without) <= max(NOTEWORTHY, abs(with_waits) / 2)


def _spread(times: array[float], *, overwrite: bool = False) -> float:
    """By how much the mean step is longer than the median one."""
    mean = math.fsum(times) / len(times)
    usual = median(times, overwrite=overwrite)
    return mean / usual - 1 if usual > 0 else 0.0


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.0f} %"
