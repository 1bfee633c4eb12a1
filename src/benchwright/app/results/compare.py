"""Compares kept runs: which metrics, what is refused, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from benchwright.analysis.comparison.separate_runs import RUN_TO_RUN
from benchwright.app.results.chosen_metrics import ChosenMetrics
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.metric import OF_CPU
from benchwright.core.results.comparison import Comparison, Effect, Verdict
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.kinds.registry import kind_of
from benchwright.regress.explain_operators import only_profiles


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
    from benchwright.analysis.comparison.compare import DEFAULT_MARGIN, compare, compare_interleaved, interleaved

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
    found = []
    for treatment in runs[1:]:
        if treatment.id == runs[0].id:
            raise InvalidInput(
                f"cannot compare {treatment.id} with itself",
                where="compare",
                remedy="name another run; see 'benchwright runs'",
            )
        comparison = compare(
            runs[0],
            treatment,
            margin=DEFAULT_MARGIN if margin is None else margin,
            run_to_run=run_to_run,
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
        found.append(comparison)
    return found


def compare_commands(run: Run) -> list[Comparison]:
    """The first of the commands that alternated in `run` against each of the others, as `compare --between` would."""
    judged = [r for r in _alternating(run) if _ends_with_verdict(r.benchmark) and not only_profiles(r)]
    return compare_alternating(run, judged)


def _alternating(run: Run) -> list[Result]:
    """Those that were measured by turns, and sides of a pair that should have been but could not be started."""
    return [r for r in run.results if any(x.block is not None for x in r.launches) or _could_not_start(r)]


def _could_not_start(result: Result) -> bool:
    return result.benchmark.side is not None and result.status is Status.FAILED and not result.launches


def _ends_with_verdict(benchmark: Benchmark) -> bool:
    return benchmark.side is not None or kind_of(benchmark).ends_with_verdict(benchmark)


def compare_alternating(run: Run, results: Sequence[Result]) -> list[Comparison]:
    """The first of `results`, which alternated in `run`, against each of the others; nothing if there is only one.

    Of those that are paired, each pair by itself.
    """
    from benchwright.analysis.comparison.compare import DEFAULT_MARGIN, compare_interleaved

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
    """As the run was judged when it ended: the whole table decides what is significant."""
    if run.decision is not None and margin is not None:
        run = replace(run, decision=replace(run.decision, margin=margin))
    sides = _sides(_alternating(run))
    if between not in sides:
        sides = [between]
    return _decided(run, sides, chosen)[sides.index(between)]


def _decided(run: Run, sides: Sequence[tuple[str, str]], chosen: ChosenMetrics) -> list[Comparison]:
    from benchwright.analysis.comparison.decided import compare_decided

    made = compare_decided(run, sides, metrics=chosen.metrics, needed=chosen.needed)
    return [chosen.marked(comparison) for comparison in made]


def undecided_effects(run: Run, names: Collection[str]) -> list[Effect] | None:
    """Of the benchmarks `names`, which alternate in a run with a rule: what may still get a verdict; None if nothing can be
    compared.

    Others of the run count as far as they are measured; for those to come, as many metrics are allowed for.
    """
    from benchwright.analysis.comparison.decided import compare_decided, may_be_decided

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
    from benchwright.analysis.comparison.decided import hardly_counts

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
    """`runs`: those that were compared, the control first."""
    from benchwright.report.comparison import (
        comparison_body,
        comparison_csv,
        comparison_markdown,
        comparison_text,
    )

    if format_ == "json":
        bodies = [comparison_body(c) for c in comparisons]
        return json.dumps(bodies[0] if len(bodies) == 1 else bodies, indent=1, allow_nan=False) + "\n"
    if format_ == "csv":
        return comparison_csv(comparisons)
    if format_ == "markdown":
        return "\n".join(comparison_markdown(c) for c in comparisons)
    if format_ == "html":
        from benchwright.report.html.comparison import comparison_html

        return comparison_html(comparisons, runs)
    return "\n".join(comparison_text(c, width=width) for c in comparisons)
