"""Which operators account for a slow-down: their times in profiled launches of both sides, and the rest that none explains.

Profiling slows a model down, so the slow-down itself is that of the timed launches. What operators do not account for is shown
as such: time between operators, the profiler's own, or noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.run import Launch, Result

OP_TIME, OTHER = "op.time", "other"


class OperatorChange(msgspec.Struct, frozen=True, kw_only=True):
    """One operator in one call. `control_s` or `treatment_s` None: it does not run there.

    `below_s`: it may run on the side that lacks it, among the small ones that were summed, but takes less than this.
    `clear`: no launch of one side is within the range of the other's; None: too few launches to tell.
    """

    op: str
    control_s: float | None
    treatment_s: float | None
    difference_s: float
    share: float | None = None  # of the slow-down; of the profiled one, if profiling made that the larger
    calls: tuple[str, str] = ("", "")  # how often it runs; empty: not known
    clear: bool | None = None
    below_s: float | None = None


class OperatorsExplained(msgspec.Struct, frozen=True, kw_only=True):
    """`slow_down_s` = the differences of `operators` + `rest_s`. None: it is not known to be slower.

    A negative `rest_s`: profiling slowed the operators down by more than they account for.
    """

    operators: tuple[OperatorChange, ...]  # the largest difference first
    launches: tuple[int, int]
    per: str = "call"
    slow_down_s: float | None = None
    rest_s: float | None = None
    run: str = ""  # that profiled them

    @property
    def explained_s(self) -> float:
        return math.fsum(each.difference_s for each in self.operators)


class _Side(msgspec.Struct, frozen=True):
    """Of each operator its time in each launch, and its runs in a call."""

    times: Mapping[str, Sequence[float]]
    calls: Mapping[str, str]

    def median(self, op: str) -> float | None:
        return statistics.median(self.times[op]) if op in self.times else None

    @property
    def bound_s(self) -> float | None:
        """Operators that are not listed take less than this; None: all are listed."""
        if OTHER not in self.times:
            return None
        listed = [statistics.median(values) for op, values in self.times.items() if op != OTHER]
        return min([statistics.median(self.times[OTHER]), *listed])


def has_operators(result: Result) -> bool:
    return any(m.metric == OP_TIME for launch in result.counted for m in launch.measurements)


def only_profiles(result: Result) -> bool:
    """Whether its launches were profiled, and so are slower than the program: they decide nothing."""
    return any(m.metric == OP_TIME and m.source == "model" for launch in result.counted for m in launch.measurements)


def explain_operators(
    control: Result, treatment: Result, slow_down_s: float | None, *, run: str = "", per: str = "call"
) -> OperatorsExplained | None:
    """The operators of two profiled results, matched by name; None unless both have some.

    `slow_down_s`: of one call, from launches that were not profiled.
    """
    before, after = (_side(result.counted) for result in (control, treatment))
    if not before.times or not after.times:
        return None
    before, after = _folded(before, after), _folded(after, before)
    found = [_change(op, before, after) for op in dict.fromkeys((*before.times, *after.times))]
    found.sort(key=lambda each: -abs(each.difference_s))
    explained = math.fsum(each.difference_s for each in found)
    if slow_down_s is not None and slow_down_s > 0:
        whole = max(slow_down_s, explained)
        found = [msgspec.structs.replace(each, share=each.difference_s / whole) for each in found]
    return OperatorsExplained(
        operators=tuple(found),
        launches=(len(control.counted), len(treatment.counted)),
        per=per,
        slow_down_s=slow_down_s,
        rest_s=None if slow_down_s is None else slow_down_s - explained,
        run=run,
    )


def _side(launches: Sequence[Launch]) -> _Side:
    """An operator that a launch does not have took no time in it."""
    each = [_times(launch) for launch in launches]
    each = [times for times in each if times]
    ops = dict.fromkeys(op for times in each for op in times)
    calls: dict[str, str] = {}
    for launch in launches:
        for m in launch.measurements:
            if m.metric == OP_TIME:
                calls.setdefault(_name(m.labels), m.labels.get("calls", ""))
    return _Side({op: [times.get(op, 0.0) for times in each] for op in ops}, calls)


def _times(launch: Launch) -> dict[str, float]:
    found: dict[str, float] = {}
    for m in launch.measurements:
        if m.metric == OP_TIME and m.samples:
            found[_name(m.labels)] = found.get(_name(m.labels), 0.0) + statistics.median(m.samples)
    return found


def _name(labels: Mapping[str, str]) -> str:
    """The operator with whatever else tells it apart, such as the layer it belongs to."""
    more = ", ".join(value for key, value in sorted(labels.items()) if key not in ("op", "calls"))
    return labels.get("op", "") + (f" [{more}]" if more else "")


def _folded(side: _Side, other: _Side) -> _Side:
    """Small operators that the other side has only in its sum count in the sum here, too."""
    bound = other.bound_s
    if bound is None:
        return side
    small = [op for op in side.times if op not in other.times and op != OTHER and (side.median(op) or 0.0) <= bound]
    if not small:
        return side
    count = len(next(iter(side.times.values())))
    summed = [
        math.fsum(side.times[op][n] for op in (*small, *([OTHER] if OTHER in side.times else []))) for n in range(count)
    ]
    kept = {op: times for op, times in side.times.items() if op not in small and op != OTHER}
    return _Side({**kept, OTHER: summed}, side.calls)


def _change(op: str, before: _Side, after: _Side) -> OperatorChange:
    control, treatment = before.median(op), after.median(op)
    lacking = before if control is None else after if treatment is None else None
    below = lacking.bound_s if lacking is not None else None
    absent = "0" if below is None else ""
    old, new = (below or 0.0 if value is None else value for value in (control, treatment))
    return OperatorChange(
        op=op,
        control_s=control,
        treatment_s=treatment,
        difference_s=new - old,
        calls=("", "") if op == OTHER else (before.calls.get(op, absent), after.calls.get(op, absent)),
        clear=_apart(before.times.get(op, [below or 0.0]), after.times.get(op, [below or 0.0]), lacking is not None),
        below_s=below,
    )


def _apart(before: Sequence[float], after: Sequence[float], lacking: bool) -> bool | None:
    """`lacking`: one side does not have it, in any launch; the most that it may take stands in for it."""
    if not lacking and min(len(before), len(after)) < 2:
        return None
    return max(before) < min(after) or max(after) < min(before)
