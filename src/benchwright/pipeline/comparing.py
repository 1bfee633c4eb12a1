"""Comparing runs that were kept: which metrics, what is refused, and how it is shown."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from benchwright.domain.comparison import Comparison, Verdict
from benchwright.domain.errors import InvalidInput
from benchwright.domain.run import Run

# What tells how a program did its own work; process and sampler figures only on request.
_QUIET_SOURCES = ("sampler", "process")


def compare_runs(
    runs: Sequence[Run],
    *,
    between: tuple[str, str] | None,
    margin: float,
    metrics: Sequence[str],
    all_metrics: bool,
    anyway: bool,
) -> list[Comparison]:
    """The first run against every other; or two benchmarks of one run, as pairs."""
    from benchwright.analysis.comparison import compare, compare_interleaved

    if between:
        return [_chosen(compare_interleaved(runs[0], *between, margin=margin), runs[0], metrics, all_metrics)]
    found = []
    for treatment in runs[1:]:
        comparison = compare(runs[0], treatment, margin=margin)
        severe = [d for d in comparison.differences if d.severe]
        if severe and not anyway:
            words = "; ".join(f"{d.what}: {d.control} → {d.treatment}" for d in severe[:4])
            raise InvalidInput(
                f"{comparison.control} and {comparison.treatment} are not comparable: {words}",
                where="compare",
                remedy="--anyway compares them all the same, with the difference shown",
            )
        found.append(_chosen(comparison, runs[0], metrics, all_metrics))
    return found


def _chosen(comparison: Comparison, control: Run, metrics: Sequence[str], all_metrics: bool) -> Comparison:
    """Only what was asked for; a benchmark that has nothing but process figures keeps its duration."""
    if all_metrics and not metrics:
        return comparison
    sources = {
        (r.benchmark.name, m.metric): m.source for r in control.results for x in r.launches for m in x.measurements
    }
    telling = {name for (name, _), source in sources.items() if source not in _QUIET_SOURCES}

    def is_wanted(benchmark: str, metric: str) -> bool:
        if metrics:
            return metric in metrics
        if sources.get((benchmark, metric)) in _QUIET_SOURCES:
            return benchmark not in telling and metric == "process.duration"
        return metric not in ("step_time", "wait_time", "throughput")

    return msgspec.structs.replace(
        comparison, effects=tuple(e for e in comparison.effects if is_wanted(e.benchmark, e.metric))
    )


def failing(comparison: Comparison, fail_on: str) -> bool:
    """Whether `--fail-on` has something to fail on. What cannot be compared because it failed counts as regressed."""
    verdicts = {e.verdict for e in comparison.effects}
    if comparison.missing or Verdict.REGRESSED in verdicts:
        return True
    if fail_on == "inconclusive":
        return Verdict.INCONCLUSIVE in verdicts
    return fail_on == "changed" and Verdict.IMPROVED in verdicts


def render(comparisons: Sequence[Comparison], format_: str, width: int) -> str:
    from benchwright.reporters.comparison import comparison_json, comparison_markdown, comparison_text

    if format_ == "json":
        if len(comparisons) == 1:
            return comparison_json(comparisons[0])
        return json.dumps([json.loads(comparison_json(c)) for c in comparisons], indent=1) + "\n"
    if format_ == "markdown":
        return "\n".join(comparison_markdown(c) for c in comparisons)
    if format_ == "html":
        from benchwright.reporters.html.comparison import comparison_html

        return comparison_html(comparisons)
    return "\n".join(comparison_text(c, width=width) for c in comparisons)
