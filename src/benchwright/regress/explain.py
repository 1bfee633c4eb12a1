"""Explains a regression: what moved with it, which operators account for it, and what else differs between the two sides."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence

import msgspec

from benchwright.analysis.operator_times import OperatorsExplained, explain_operators, has_operators
from benchwright.core.comparison import Comparison, Difference, Effect, Verdict
from benchwright.core.conditions import conditions_of, undecided, unlike
from benchwright.core.metric import CPU_TIME, DURATION, STEP_CPU
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.report.tables.comparison import sorted_effects
from benchwright.report.text.numbers import format_value

# What moved together with the time: work or waiting, the kernel's share, other load, clocks.


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


_LAUNCH_TIME = "process.duration"
_STEP_TIME = "step_time"
_CALL_TIMES = ("latency", _STEP_TIME)


class RevisionsBetween(msgspec.Struct, frozen=True, kw_only=True):
    """The revisions of both sides and the commits that lie between them, oldest first; `total` may be more than are listed."""

    control: str
    treatment: str
    commits: tuple[str, ...] = ()
    total: int = 0


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Of one benchmark. Effects compare the treatment with the control."""

    benchmark: str
    control: str
    treatment: str
    headline: Effect | None  # what is explained: the worst of the metrics that the verdict is about
    causes: tuple[str, ...] = ()
    operators: OperatorsExplained | None = None
    moved: tuple[Effect, ...] = ()  # other metrics that differ
    memory: tuple[Effect, ...] = ()
    environment: tuple[Difference, ...] = ()
    conditions: tuple[Note, ...] = ()
    revisions: RevisionsBetween | None = None
    advice: tuple[str, ...] = ()  # how to learn more


class Profiled(msgspec.Struct, frozen=True):
    """Results of profiled launches of both sides. `per`: what an operator's time is of: a call of the model, or the launch."""

    control: Result
    treatment: Result
    run: str = ""
    per: str = "call"


def explain(
    verdict: Comparison,
    every: Comparison,
    control: Result,
    treatment: Result,
    *,
    name: str = "",
    profiled: Profiled | None = None,
    differences: tuple[Difference, ...] = (),
    revisions: RevisionsBetween | None = None,
    advice: tuple[str, ...] = (),
) -> Explanation:
    """`verdict`: the comparison that said so; `every`: the same with all metrics, which are searched for what moved along."""
    own = [e for e in verdict.effects if e.benchmark == control.benchmark.name]
    headline = _worst(own)
    others = [e for e in every.effects if e.benchmark == control.benchmark.name and not _is_operator(e)]
    call = _call_time(others)
    launch = next((e for e in others if e.metric == _LAUNCH_TIME), None)
    of_launch = call is None
    certain = any(e.verdict is Verdict.REGRESSED and _is_time(e) for e in own)
    of_step = call is not None and call.metric == _STEP_TIME
    split = split_of(control, treatment, None if call is None else (call.control, call.treatment), of_step=of_step)
    return Explanation(
        benchmark=name or control.benchmark.name,
        control=verdict.control,
        treatment=verdict.treatment,
        headline=headline,
        causes=verdict.missing
        if headline is None
        else tuple(causes(control, treatment, split, of_launch=of_launch, slower=certain)),
        operators=_operators(profiled, call, launch, certain),
        moved=tuple(e for e in _moved(others) if not _is_memory(e) and _key(e) != (headline and _key(headline))),
        memory=tuple(e for e in sorted_effects(others) if _is_memory(e) and _is_peak(e)),
        environment=differences,
        conditions=tuple(conditions(control, treatment)),
        revisions=revisions,
        advice=advice,
    )


def profile_in(result: Result, others: tuple[Result, ...]) -> Result | None:
    """The profile of the same model among the results of its run: it is launched apart, so that it disturbs no timed one."""

    def what(one: Result) -> tuple[object, ...]:
        work, labels = one.benchmark.workload, one.benchmark.labels
        return work.words, work.variant, labels.get("side"), tuple(sorted(one.benchmark.parameters.items()))

    found = [other for other in others if other is not result and has_operators(other) and what(other) == what(result)]
    return found[0] if found else None


def _operators(
    profiled: Profiled | None, call: Effect | None, launch: Effect | None, certain: bool
) -> OperatorsExplained | None:
    """`certain`: it is known to be slower; there are no shares of a slow-down that may be none."""
    if profiled is None:
        return None
    timed = call if profiled.per == "call" else launch
    slow_down = None if timed is None or not certain else timed.treatment - timed.control
    return explain_operators(profiled.control, profiled.treatment, slow_down, run=profiled.run, per=profiled.per)


def _worst(effects: list[Effect]) -> Effect | None:
    """A regression before anything else, then times and rates, and the largest change first."""
    order = {Verdict.REGRESSED: 0, Verdict.INCONCLUSIVE: 1, Verdict.IMPROVED: 2, Verdict.SAME: 3}
    return min(effects, key=lambda e: (order[e.verdict], e.beside, not _is_time(e), -abs(e.ratio - 1)), default=None)


def _call_time(effects: list[Effect]) -> Effect | None:
    """In seconds, of one call or step of the loop that counts."""
    timed = {e.metric: e for e in reversed(effects) if e.unit == "s" and e.metric in _CALL_TIMES}
    return next((timed[metric] for metric in _CALL_TIMES if metric in timed), None)


def _moved(effects: list[Effect]) -> list[Effect]:
    """Effects that regressed or improved: an unchanged metric explains nothing."""
    return [e for e in sorted_effects(effects) if e.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]


def _key(effect: Effect) -> tuple[str, dict[str, str]]:
    return effect.metric, effect.labels


def _is_time(effect: Effect) -> bool:
    """A time, or a rate."""
    return effect.unit in ("s", "ms", "us", "ns") or (effect.unit or "").endswith("/s")


def _is_operator(effect: Effect) -> bool:
    return "op" in effect.labels


def _is_memory(effect: Effect) -> bool:
    return effect.metric.startswith("memory.") or ".memory" in effect.metric


def _is_peak(effect: Effect) -> bool:
    """One figure for each launch; the samples in between say the same again."""
    return effect.metric not in ("memory.rss", "memory.pss", "gpu.memory") and effect.unit == "B"
