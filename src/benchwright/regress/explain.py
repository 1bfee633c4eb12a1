"""Explains a regression: what moved with it, which operators account for it, and what else differs between the two sides."""

from __future__ import annotations

import msgspec

from benchwright.core.note import Note
from benchwright.core.results.comparison import Comparison, Difference, Effect, Verdict
from benchwright.core.run import Result
from benchwright.regress.explain_causes import causes, conditions, split_of
from benchwright.regress.explain_operators import OperatorsExplained, explain_operators, has_operators
from benchwright.report.tables.comparison import sorted_effects

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
    """Those that are known to differ, or may: what is known to be the same explains nothing."""
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
