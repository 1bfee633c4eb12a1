"""Whether the loop that counts can be trusted: it ran on every rank, its clock went forward, and it did something."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchwright.core.benchmark import Benchmark
from benchwright.core.status import Reason, Status
from benchwright.record.fold import Fold
from benchwright.record.loops.loops import MEASURED, LoopRecord, counting_name
from benchwright.record.loops.outside_clock import contradiction
from benchwright.record.loops.steps import NS
from benchwright.record.verdict import LaunchVerdict

_CLOCKS = 0.02  # by what part two clocks may differ over a launch
_SLACK_S = 0.1


def judge_loops(fold: Fold, benchmark: Benchmark, counting: Sequence[LoopRecord]) -> LaunchVerdict | None:
    """The fault in the loops of a launch that ended well; None if there is none."""
    if fold.gatherer.measures_itself:
        return None
    if not counting:
        return _no_steps(fold, benchmark)
    for record in counting:
        wrong = _went_back(record) or _longer_than_it_lived(record, fold)
        wrong = wrong or contradiction(fold.outside.bounds_s(record.key))
        if wrong is not None:
            return LaunchVerdict(Status.FAILED, Reason.INVALID, f"loop '{record.name}': {wrong}")
    return None


def _no_steps(fold: Fold, benchmark: Benchmark) -> LaunchVerdict | None:
    records = list(fold.loops.values())
    name = counting_name(records, benchmark.loop)
    if not records or name is None:
        return None
    if any(r.name == name for r in records):
        detail = f"loop '{name}' completed no step"
    else:
        others = ", ".join(f"'{n}'" for n in sorted({r.name for r in records})[:8])
        detail = f"no loop is called '{name}'; name one with --loop: {others}"
    return LaunchVerdict(Status.FAILED, Reason.NO_DATA, detail)


def _longer_than_it_lived(record: LoopRecord, fold: Fold) -> str | None:
    """Its steps follow each other, so together they cannot take longer than the program lived."""
    lived_s = (fold.end or {}).get("duration_s")
    took_s = sum(steps.host_ns for steps in record.phases.values()) * NS
    if not isinstance(lived_s, int | float) or took_s <= lived_s * (1 + _CLOCKS) + _SLACK_S:
        return None
    return f"its steps add up to {took_s:.3g} s, but the program ran for {lived_s:.3g} s"


def _went_back(record: LoopRecord) -> str | None:
    worst = min(record.phases[MEASURED].seconds, default=0.0)
    return f"the clock went back by {-worst:.3g} s during a step" if worst < 0 else None


def lost_ranks(records: Iterable[LoopRecord]) -> str | None:
    """Which ranks began the loop that counts and never ended it, while others did; None if there are none.

    A launcher may end well although one of its processes died; what the others measured is not the work of all.
    """
    counting = [record for record in records if record.counts and record.rank is not None]
    names = {record.name for record in counting if record.ends or record.stop is not None}
    lost = [r for r in counting if r.name in names and not r.ends and r.stop is None]
    if not lost:
        return None
    which = ", ".join(str(rank) for rank in sorted({r.rank for r in lost if r.rank is not None}))
    few = "rank" if len(lost) == 1 else "ranks"
    return f"{few} {which} began loop '{lost[0].name}' and never finished it: a process died or exited, so not all were measured"
