"""Compares kept runs: which metrics, what is refused, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.analysis.comparison.ab_verdicts import compare_decided, hardly_counts, may_be_decided
from benchwright.analysis.comparison.comparable import ComparableResult, ComparableRun, comparable, figures_of
from benchwright.analysis.comparison.compare import (
    DEFAULT_MARGIN,
    Whole,
    compare_comparable,
    compare_interleaved,
    interleaved,
)
from benchwright.analysis.comparison.separate_runs import RUN_TO_RUN
from benchwright.analysis.operator_times import only_profiles
from benchwright.core.benchmark import Benchmark
from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.errors import InvalidInput, UnknownMetric, did_you_mean
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
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status
from benchwright.core.summary import PEAK_RSS
from benchwright.kinds.registry import kind_of
from benchwright.report.comparison import (
    comparison_body,
    comparison_csv,
    comparison_markdown,
    comparison_text,
)
from benchwright.report.html.comparison import comparison_html
from benchwright.results.node_spreads import on_two_nodes, spread_for

# Which metrics of a run are compared, and which of them its benchmarks are about.


# Figures of the process and of samplers are compared only on request.
_QUIET_SOURCES = ("sampler", "process")
_OF_WHOLE_LAUNCHES = (DURATION, CPU_TIME, GPU_TIME)  # depend on how long a loop was let run
_WATCHED = (DURATION, *OF_CPU, *OF_GPU, PEAK_RSS, "gpu.memory_peak")  # what a change should not cost, too
_ONE_ERROR = f"{ERROR}relative_l2"  # the other figures of an error tell the same
_SAME_STORY = ("step_time", "wait_time", "step_rate", "wait_share")  # of a loop whose rate is compared
_LOOP, _LOG, _MODEL = "loop", "log", "model"
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
        self, control: Run | ComparableRun, metrics: Sequence[str], all_metrics: bool = False, *, beside: bool = False
    ) -> None:
        figures = _figures(control)
        if any(r.ending.counted if isinstance(r, ComparableResult) else r.counted for r in control.results):
            run = control if isinstance(control, Run) else control.run
            _refuse_unknown(run.id, metrics, {figure.metric for figure in figures})
        telling = _telling(figures)
        self.needed = frozenset(metrics or (figure.metric for figure in telling))
        if metrics or all_metrics:
            self.metrics = frozenset(f.key for f in figures if not metrics or f.metric in metrics)
        else:
            self.metrics = frozenset(figure.key for figure in telling)
        self._beside: frozenset[tuple[str, str]] = frozenset()
        if beside and not metrics:
            about = _about(telling)
            whole = _run_whole(control) if isinstance(control, Run) else set()
            cut_short = {f.benchmark for f in figures if f.source == _LOOP} - whole
            self.metrics |= {
                f.key
                for f in figures
                if f.metric in _WATCHED and (f.metric not in _OF_WHOLE_LAUNCHES or f.benchmark not in cut_short)
            }
            self._beside = self.metrics - about

    @property
    def of_any(self) -> set[str]:
        """The names of the metrics, of whichever benchmark."""
        return {metric for _, metric in self.metrics}

    def marked(self, comparison: Comparison) -> Comparison:
        """With secondary metrics marked: they may show the price of a gain."""
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


def _figures(run: Run | ComparableRun) -> list[_Figure]:
    named = [(r.benchmark.name, r.figures if isinstance(r, ComparableResult) else figures_of(r)) for r in run.results]
    found = {(name, figure[0]): _Figure(name, *figure) for name, figures in named for figure in figures}
    return list(found.values())


def _run_whole(run: Run) -> set[str]:
    """Benchmarks of pairs whose loops always came to their own end: the work of a launch does not depend on its speed."""
    cut = {r.benchmark.pair for r in run.results for x in r.counted if not _came_to_its_end(x)}
    return {r.benchmark.name for r in run.results if r.benchmark.pair not in cut}


def _came_to_its_end(launch: Launch) -> bool:
    """None of its loops was ended by a stop rule, as far as is known."""
    loops = launch.facts.get("loops") or ()
    return bool(loops) and all(loop["stop"] is None or loop["stop"].get("by") == "loop" for loop in loops)


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
    """The primary metrics of the benchmarks; all metrics of a benchmark that has no primary one."""
    about = {figure.key for figure in telling if not figure.is_aside}
    named = {benchmark for benchmark, _ in about}
    return about | {figure.key for figure in telling if figure.benchmark not in named}


def compare_runs(
    runs: Sequence[Run],
    *,
    between: tuple[str, str] | None,
    margin: float | None,
    metrics: Sequence[str],
    all_metrics: bool,
    anyway: bool,
    run_to_run: float = RUN_TO_RUN,
) -> list[Comparison]:
    """The first run against every other; or two benchmarks of one run, as pairs. `margin` None: the run's own, else 2 %."""
    chosen = _chosen(runs[0], metrics, all_metrics) if between else ChosenMetrics(runs[0], metrics, all_metrics)
    if between:
        known = [r.benchmark.name for r in runs[0].results]
        for name in between:
            if name not in known:
                remedy = did_you_mean(name, known) or f"it measured {', '.join(known)}"
                raise InvalidInput(f"{runs[0].id} did not measure '{name}'", where="--between", remedy=remedy)
        if between[0] == between[1]:
            raise InvalidInput(f"cannot compare {between[0]} with itself", where="--between", remedy="name another")
        if not interleaved(runs[0], *between):
            raise InvalidInput(
                f"{between[0]} and {between[1]} were not interleaved",
                where="--between",
                remedy="measure them together: benchwright run --repeat 10 -c 'A' -c 'B' (task files: --interleave)",
            )
        if runs[0].decision is not None:
            return [_between_sides(runs[0], between, chosen, margin)]
        margin = DEFAULT_MARGIN if margin is None else margin
        compared = compare_interleaved(runs[0], *between, margin=margin, metrics=chosen.metrics, needed=chosen.needed)
        return [chosen.marked(compared)]
    return [
        compare_separate(
            comparable(runs[0], chosen.of_any),
            comparable(treatment, chosen.of_any),
            _both(runs[0], treatment),
            chosen,
            margin=margin,
            run_to_run=run_to_run,
            anyway=anyway,
        )
        for treatment in runs[1:]
    ]


def _both(control: Run, treatment: Run) -> Whole:
    return lambda: (control, treatment)


def compare_separate(
    control: ComparableRun,
    treatment: ComparableRun,
    whole: Whole,
    chosen: ChosenMetrics,
    *,
    margin: float | None = None,
    run_to_run: float = RUN_TO_RUN,
    anyway: bool = False,
) -> Comparison:
    """InvalidInput if they are one run, or too different. `whole`: both with their samples, which few comparisons need."""
    before, after = control.run, treatment.run
    if after.id == before.id:
        raise InvalidInput(
            f"cannot compare {after.id} with itself",
            where="compare",
            remedy="name another run; see 'benchwright runs'",
        )
    comparison = compare_comparable(
        control,
        treatment,
        whole,
        margin=DEFAULT_MARGIN if margin is None else margin,
        run_to_run=_between_nodes(before, after, run_to_run, anyway=anyway),
        metrics=chosen.metrics,
        needed=chosen.needed,
    )
    severe = [d for d in comparison.differences if d.severe]
    if severe and not anyway:
        words = "; ".join(f"{d.what}: {d.control} → {d.treatment}" for d in severe[:4])
        raise InvalidInput(
            f"{comparison.control} and {comparison.treatment} are not comparable: {words}",
            where="compare",
            remedy="use --anyway to compare them and show the difference",
        )
    return comparison


def _between_nodes(control: Run, treatment: Run, run_to_run: float, *, anyway: bool) -> float:
    """The difference that an unchanged program may show: on two nodes of a cluster, the nodes' difference included."""
    if not on_two_nodes(control, treatment):
        return run_to_run
    spread = spread_for(control, treatment)
    if spread is None and not anyway and control.machine.fingerprint == treatment.machine.fingerprint:
        hosts = f"{control.machine.hostname} and {treatment.machine.hostname}"
        raise InvalidInput(
            f"{control.id} and {treatment.id} ran on two nodes ({hosts}), and how much such nodes differ is not known",
            where="compare",
            remedy="measure it with 'benchwright doctor --on', run both on one node, or use --anyway",
        )
    return run_to_run if spread is None else max(run_to_run, spread.allowance)


def compare_commands(run: Run) -> list[Comparison]:
    """The first of the commands that alternated in `run` against each of the others, as `compare --between` would."""
    judged = [r for r in _alternating(run) if _ends_with_verdict(r.benchmark) and not only_profiles(r)]
    return compare_alternating(run, judged)


def _alternating(run: Run) -> list[Result]:
    """Benchmarks measured in turns, and sides of a pair that should have been but could not be started."""
    return [r for r in run.results if any(x.block is not None for x in r.launches) or _could_not_start(r)]


def _could_not_start(result: Result) -> bool:
    return result.benchmark.side is not None and result.status is Status.FAILED and not result.launches


def _ends_with_verdict(benchmark: Benchmark) -> bool:
    return benchmark.side is not None or kind_of(benchmark).ends_with_verdict(benchmark)


def compare_alternating(run: Run, results: Sequence[Result]) -> list[Comparison]:
    """The first of `results`, which alternated in `run`, against each of the others; nothing if there is only one.

    Each pair is compared by itself.
    """
    chosen = _chosen(run, (), all_metrics=False)
    sides = _sides(results)
    if run.decision is not None:
        return _decided(run, sides, chosen)
    return [
        chosen.marked(
            compare_interleaved(run, *both, margin=DEFAULT_MARGIN, metrics=chosen.metrics, needed=chosen.needed)
        )
        for both in sides
    ]


def _sides(results: Sequence[Result]) -> list[tuple[str, str]]:
    """The first of each group that alternates, with each of the others."""
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(result.benchmark.pair, []).append(result.benchmark.name)
    return [(first, other) for first, *others in groups.values() for other in others]


def _between_sides(run: Run, between: tuple[str, str], chosen: ChosenMetrics, margin: float | None) -> Comparison:
    """As the run was judged when it ended: significance depends on the whole table."""
    if run.decision is not None and margin is not None:
        run = replace(run, decision=replace(run.decision, margin=margin))
    sides = _sides(_alternating(run))
    if between not in sides:
        sides = [between]
    return _decided(run, sides, chosen)[sides.index(between)]


def _decided(run: Run, sides: Sequence[tuple[str, str]], chosen: ChosenMetrics) -> list[Comparison]:
    made = compare_decided(run, sides, metrics=chosen.metrics, needed=chosen.needed)
    return [chosen.marked(comparison) for comparison in made]


def undecided_effects(run: Run, names: Collection[str]) -> list[Effect] | None:
    """Of the benchmarks `names`, which alternate in a run with a rule: what may still get a verdict; None if nothing can be
    compared.

    Others of the run count as far as they are measured; for those to come, as many metrics are allowed for.
    """
    chosen = _chosen(run, (), all_metrics=False)
    sides = _sides(_alternating(run))
    to_come = len(_sides([r for r in run.results if r.status is not Status.SKIPPED])) - len(sides)
    each = len({metric for name, metric in chosen.metrics if name in names})
    made = compare_decided(
        run, sides, metrics=chosen.metrics, needed=chosen.needed, more_effects=max(0, to_come) * each
    )
    effects = [e for c in map(chosen.marked, made) if c.control in names for e in c.effects]
    if all(e.beside for e in effects):
        return None
    most = run.decision.most_blocks if run.decision else 0
    return [
        e
        for e in effects
        if e.verdict is Verdict.INCONCLUSIVE and may_be_decided(e) and _is_waited_for(e, effects, most)
    ]


def _is_waited_for(effect: Effect, effects: Sequence[Effect], most: int) -> bool:
    """Whether launches go on for it. What is compared beside decides as far as it gets, and prolongs nothing; only CPU time, of
    `most` pairs, stands in for what hardly any pair counts for."""
    same = [e for e in effects if e.benchmark == effect.benchmark]
    by_cpu = [e for e in same if e.metric in OF_CPU]
    made = max(min(e.launches) for e in same)
    if effect.beside:
        hopeless = any(not e.beside and hardly_counts(e, made) for e in same)
        return hopeless and effect in by_cpu and len(effect.pairs) < most
    return not by_cpu or not hardly_counts(effect, made)


def telling_metrics(run: Run) -> frozenset[tuple[str, str]]:
    """Of each benchmark what its program reports, or its duration: (benchmark, metric)."""
    return ChosenMetrics(run, (), all_metrics=False).metrics


def _chosen(run: Run, metrics: Sequence[str], all_metrics: bool) -> ChosenMetrics:
    """Of a run whose launches alternated. The rule of an A/B says what decides, unless other metrics are asked for."""
    if run.decision is None or metrics or all_metrics:
        return ChosenMetrics(run, metrics, all_metrics)
    return ChosenMetrics(run, run.decision.metrics, all_metrics=False, beside=True)


def failing(comparison: Comparison, fail_on: str) -> bool:
    """Whether `--fail-on` fails. A benchmark that failed, so that it cannot be compared, counts as regressed. What is compared
    beside may stay inconclusive."""
    verdicts = {e.verdict for e in comparison.effects}
    if comparison.lost or not verdicts or Verdict.REGRESSED in verdicts:
        return True
    if fail_on == "inconclusive":
        return any(e.verdict is Verdict.INCONCLUSIVE and not e.beside for e in comparison.effects)
    return fail_on == "changed" and Verdict.IMPROVED in verdicts


def render(comparisons: Sequence[Comparison], runs: Sequence[Run], format_: str, width: int) -> str:
    """`runs`: the runs compared, the control first."""
    if format_ == "json":
        bodies = [comparison_body(c) for c in comparisons]
        return json.dumps(bodies[0] if len(bodies) == 1 else bodies, indent=1, allow_nan=False) + "\n"
    if format_ == "csv":
        return comparison_csv(comparisons)
    if format_ == "markdown":
        return "\n".join(comparison_markdown(c) for c in comparisons)
    if format_ == "html":
        return comparison_html(comparisons, runs)
    return "\n".join(comparison_text(c, width=width) for c in comparisons)
