"""What moved together with the time: work or waiting, the kernel's share, other load, clocks."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

import msgspec

from benchwright.core.metric import CPU_TIME, DURATION, STEP_CPU
from benchwright.core.note import Note
from benchwright.core.results.conditions import conditions_of, undecided, unlike
from benchwright.core.run import Launch, Result
from benchwright.report.text.numbers import format_value

_MOSTLY, _HARDLY = 0.7, 0.3  # of the slow-down
_MORE_WAITS, _LEAST_WAITS = 1.2, 200  # a count that grew by this factor, and by so many, is worth a word


class TimeSplit(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one call or launch, and the CPU time in it; of control and treatment."""

    time_s: tuple[float, float]
    cpu_s: tuple[float, float]

    @property
    def work_share(self) -> float | None:
        """How much of the slow-down is CPU time; None if it is not slower. More than 1: several threads work."""
        slower = self.time_s[1] / self.time_s[0] - 1
        return (self.cpu_s[1] / self.cpu_s[0] - 1) / slower if slower > 0 and self.cpu_s[0] > 0 else None


def split_of(
    control: Result, treatment: Result, time_s: tuple[float, float] | None, *, of_step: bool = False
) -> TimeSplit | None:
    """None where the CPU time is not known. `time_s`: of one call of a loop, or of one step (`of_step`); None: of the whole
    launch, without what it waited for a core if that is known.

    A loop that runs for a given time takes as long however slow it is; the CPU time of its steps or, unless other load had a part
    in it, its CPU use while it was measured tells how much of a call was work.
    """
    sides = (control.counted, treatment.counted)
    if time_s is None:
        waited = all(conditions_of(launch).waited_s is not None for side in sides for launch in side)
        wall = _both(sides, _without_waiting if waited else _value(DURATION))
        cpu = _both(sides, _value(CPU_TIME))
        return TimeSplit(time_s=wall, cpu_s=cpu) if wall and cpu and wall[0] > 0 else None
    if time_s[0] <= 0:
        return None
    if of_step and (cpu := _both(sides, _value(STEP_CPU))) is not None:
        return TimeSplit(time_s=time_s, cpu_s=cpu)
    use = _both(sides, _mean("cpu.use"))
    if use is None or any(undecided(side) for side in sides):
        return None
    return TimeSplit(time_s=time_s, cpu_s=(time_s[0] * use[0] / 100, time_s[1] * use[1] / 100))


def causes(control: Result, treatment: Result, split: TimeSplit | None, *, of_launch: bool, slower: bool) -> list[str]:
    """Sentences, the most telling first. `of_launch`: the whole launch is timed, so that what the kernel counted belongs to it."""
    found: list[str] = []
    if split is not None and slower:
        found += _work_or_waiting(split)
    if of_launch:
        found += _kernel(control, treatment, split)
        found += _waits(control, treatment)
    return found


def conditions(control: Result, treatment: Result) -> list[Note]:
    """How the conditions of the two sides differ, and how many launches of each were disturbed."""
    found = []
    note = unlike(control.counted, treatment.counted)
    if note is not None:
        found.append(note)
    for side, result in (("control", control), ("treatment", treatment)):
        disturbed = sum(bool(conditions_of(launch).disturbed) for launch in result.counted)
        if disturbed:
            text = f"{side}: {disturbed} of {len(result.counted)} launches were disturbed by other load or clocks"
            found.append(Note(text=text))
    return found


def _work_or_waiting(split: TimeSplit) -> Iterator[str]:
    share = split.work_share
    if share is None:
        return
    cpu = f"CPU time {_change(split.cpu_s)}, time {_change(split.time_s)}"
    if share >= _MOSTLY:
        yield f"It does more work: {cpu}."
    elif share <= _HARDLY:
        yield f"It waits longer: {cpu}. Look for sleeps, locks, input and output, or threads that idle."
    else:
        yield f"About {share * 100:.0f} % of the slow-down is work, the rest waiting: {cpu}."


def _kernel(control: Result, treatment: Result, split: TimeSplit | None) -> Iterator[str]:
    system = _both((control.counted, treatment.counted), _used("system_s"))
    if system is None or split is None:
        return
    added, of_kernel = split.cpu_s[1] - split.cpu_s[0], system[1] - system[0]
    if added > 0.02 * split.cpu_s[0] and of_kernel > 0.5 * added:
        yield (
            f"Most of the added CPU time is in the kernel ({format_value(system[0], 's')} → "
            f"{format_value(system[1], 's')}): system calls, memory, input and output."
        )


def _waits(control: Result, treatment: Result) -> Iterator[str]:
    both = _both((control.counted, treatment.counted), _used("waits"))
    if both is not None and max(both) >= max(min(both) + _LEAST_WAITS, _MORE_WAITS * min(both)):
        yield f"Times it blocked: {both[0]:,.0f} → {both[1]:,.0f}."


def _change(both: tuple[float, float]) -> str:
    figures = f"{format_value(both[0], 's')} → {format_value(both[1], 's')}"
    return f"{(both[1] / both[0] - 1) * 100:+.1f} % ({figures})" if both[0] > 0 else figures


def _both(
    sides: tuple[Sequence[Launch], Sequence[Launch]], value: Callable[[Launch], float | None]
) -> tuple[float, float] | None:
    """The medians over the launches that have it; None unless both sides do."""
    old, new = ([v for launch in side if (v := value(launch)) is not None] for side in sides)
    return (statistics.median(old), statistics.median(new)) if old and new else None


def _value(metric: str) -> Callable[[Launch], float | None]:
    def of(launch: Launch) -> float | None:
        found = launch.measurement(metric)
        return statistics.median(found.samples) if found is not None and found.samples else None

    return of


def _without_waiting(launch: Launch) -> float | None:
    found = _value(DURATION)(launch)
    return None if found is None else found - (conditions_of(launch).waited_s or 0.0)


def _mean(metric: str) -> Callable[[Launch], float | None]:
    def of(launch: Launch) -> float | None:
        found = launch.measurement(metric)
        return statistics.fmean(found.samples) if found is not None and found.samples else None

    return of


def _used(name: str) -> Callable[[Launch], float | None]:
    def of(launch: Launch) -> float | None:
        usage = launch.facts.get("usage")
        value = usage.get(name) if isinstance(usage, dict) else None
        return float(value) if isinstance(value, int | float) else None

    return of
