"""Which metrics of a run are compared, and which of them its benchmarks are about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.core.errors import UnknownMetric, did_you_mean
from benchwright.core.measurement import Measurement
from benchwright.core.metric import (
    CPU_TIME,
    DURATION,
    ERROR,
    GPU_TIME,
    OF_CPU,
    OF_GPU,
    describes_work,
    is_of_the_machine,
)
from benchwright.core.results.comparison import Comparison, Effect, Verdict
from benchwright.core.results.peak_memory import PEAK_RSS
from benchwright.core.run import Launch, Run

# Figures of the process and of samplers are compared only on request.
_QUIET_SOURCES = ("sampler", "process")
_OF_WHOLE_LAUNCHES = (DURATION, CPU_TIME, GPU_TIME)  # depend on how long a loop was let run
_WATCHED = (DURATION, *OF_CPU, *OF_GPU, PEAK_RSS, "gpu.memory_peak")  # what a change should not cost, too
_ONE_ERROR = f"{ERROR}relative_l2"  # the other figures of an error tell the same
_SAME_STORY = ("step_time", "wait_time", "step_rate", "wait_share")  # of a loop whose rate is compared
_LOOP, _LOG, _MODEL, _VOIR = "loop", "log", "model", "voir"
_PARTS = ("op.time",)  # of what a benchmark measures as a whole; `explain` compares them


class _Figure(NamedTuple):
    """A metric of a benchmark, and where it comes from."""

    benchmark: str
    metric: str
    source: str
    unit: str | None

    @property
    def key(self) -> tuple[str, str]:
        return self.benchmark, self.metric

    @property
    def is_of_another_loop(self) -> bool:
        """Of one that does not count: `epoch.rate`."""
        return self.source == _LOOP and "." in self.metric

    @property
    def is_aside(self) -> bool:
        """Whether a benchmark is about something else, if it measures anything else: how a model loads, what a program
        learnt, other loops. What was asked for by a pattern is never aside."""
        if self.source == _LOG:
            return False
        return self.source == _MODEL or self.is_of_another_loop or not is_of_the_machine(self.metric, self.unit)


class ChosenMetrics:
    """The metrics to compare: those asked for; else what programs report themselves, or their duration.

    `metrics`: (benchmark, metric) pairs, chosen before comparing, since the false-alarm rate is that of the whole table.
    `needed`: metrics whose absence on one side is noted. `beside`: of an A/B, also times of the launch and memory; these, and what else a
    benchmark is not about, are marked as such. Raises UnknownMetric, unless all launches failed: they show no metrics.
    """

    def __init__(
        self, control: Run, metrics: Sequence[str], all_metrics: bool = False, *, beside: bool = False
    ) -> None:
        figures = _figures(control)
        if any(result.counted for result in control.results):
            _refuse_unknown(control.id, metrics, {figure.metric for figure in figures})
        telling = _telling(figures)
        self.needed = frozenset(metrics or (figure.metric for figure in telling))
        if metrics or all_metrics:
            self.metrics = frozenset(f.key for f in figures if not metrics or f.metric in metrics)
        else:
            self.metrics = frozenset(figure.key for figure in telling)
        self._beside: frozenset[tuple[str, str]] = frozenset()
        if beside and not metrics:
            about = _about(telling)
            cut_short = {f.benchmark for f in figures if f.source in (_LOOP, _VOIR)} - _run_whole(control)
            self.metrics |= {
                f.key
                for f in figures
                if f.metric in _WATCHED and (f.metric not in _OF_WHOLE_LAUNCHES or f.benchmark not in cut_short)
            }
            self._beside = self.metrics - about

    def marked(self, comparison: Comparison) -> Comparison:
        """With a mark on what is compared beside what the benchmarks are about, which may be the price of a gain."""
        effects = [replace(e, beside=(e.benchmark, e.metric) in self._beside) for e in comparison.effects]
        about = [e for e in effects if not e.beside]
        gained = {e.benchmark for e in about if e.verdict is Verdict.IMPROVED}
        gained -= {e.benchmark for e in about if e.verdict is Verdict.REGRESSED}
        return replace(comparison, effects=tuple(_as_price(e) if e.benchmark in gained else e for e in effects))


def _as_price(effect: Effect) -> Effect:
    """CPU or GPU time that rose while the benchmark got faster, as it does in a program that was made parallel, is no
    regression; nor is the time of the launch, as of one that compiles first."""
    if (
        effect.metric not in (*OF_CPU, *OF_GPU, DURATION)
        or not effect.beside
        or effect.verdict is not Verdict.REGRESSED
    ):
        return effect
    advice = f"the price of being faster, which is yours to judge; --metric {effect.metric} judges by this alone"
    return replace(effect, verdict=Verdict.INCONCLUSIVE, advice=advice)


def _refuse_unknown(run: str, metrics: Sequence[str], known: set[str]) -> None:
    for metric in metrics:
        if metric not in known:
            remedy = did_you_mean(metric, known) or f"it measured {', '.join(sorted(known))}"
            raise UnknownMetric(f"{run} did not measure '{metric}'", metric=metric, remedy=remedy)


def _figures(run: Run) -> list[_Figure]:
    found = {
        (r.benchmark.name, m.metric): _Figure(r.benchmark.name, m.metric, m.source, m.unit)
        for r in run.results
        for x in r.launches
        for m in x.measurements
        if not _is_of_another_process(m)
    }
    return list(found.values())


def _run_whole(run: Run) -> set[str]:
    """Benchmarks of pairs whose loops always came to their own end: the work of a launch does not depend on its speed."""
    cut = {r.benchmark.pair for r in run.results for x in r.counted if not _came_to_its_end(x)}
    return {r.benchmark.name for r in run.results if r.benchmark.pair not in cut}


def _came_to_its_end(launch: Launch) -> bool:
    """None of its loops was ended by a stop rule, as far as is known."""
    loops = launch.facts.get("loops") or ()
    return bool(loops) and all(loop["stop"] is None or loop["stop"].get("by") == "loop" for loop in loops)


def _is_of_another_process(measurement: Measurement) -> bool:
    """Of one that is shown, but does not count."""
    return "process" in measurement.labels


def _telling(figures: Sequence[_Figure]) -> list[_Figure]:
    own = {figure.benchmark for figure in figures if figure.source not in _QUIET_SOURCES}
    with_error = {figure.benchmark for figure in figures if figure.metric == _ONE_ERROR}
    return [
        f
        for f in figures
        if (f.source not in _QUIET_SOURCES and not _tells_nothing_new(f, with_error))
        or (f.metric == DURATION and f.benchmark not in own)
    ]


def _tells_nothing_new(figure: _Figure, with_error: set[str]) -> bool:
    if figure.source == _LOOP and figure.metric.rpartition(".")[2] in _SAME_STORY:
        return True
    if figure.metric.startswith(ERROR) and figure.metric != _ONE_ERROR and figure.benchmark in with_error:
        return True
    return figure.metric in _PARTS or describes_work(figure.metric)


def _about(telling: Sequence[_Figure]) -> set[tuple[str, str]]:
    """What the benchmarks are about: of those that measure nothing else, all they tell."""
    about = {figure.key for figure in telling if not figure.is_aside}
    named = {benchmark for benchmark, _ in about}
    return about | {figure.key for figure in telling if figure.benchmark not in named}
