"""The scores a report shows, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.results.efficiency import Efficiency, share_of_peak
from benchwright.core.results.score import MilabenchScore, ScoreComparison, SuiteScore
from benchwright.core.run import Run
from benchwright.kinds.registry import kind_of

OURS, MILABENCH = "ours", "milabench"


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """`rule` None: ours, where the run is one of a suite. `weights`: by name, instead of the run's own."""

    rule: str | None = None
    weights: Mapping[str, float] | None = None
    price: float | None = None
    per_device: bool = False
    against: Run | None = None  # a run to compare with


class Scores(msgspec.Struct, frozen=True):
    ours: SuiteScore | None = None
    milabench: MilabenchScore | None = None
    compared: ScoreComparison | None = None


def scores_of(run: Run, scoring: Scoring, efficiency: Mapping[str, Sequence[Efficiency]]) -> Scores:
    """No scores for what is no suite, unless an option about scores was given."""
    if scoring == Scoring() and not is_suite(run):
        return Scores()
    from benchwright.analysis.score import compare_scores, doubts_about, score_run
    from benchwright.compat.milabench.score import milabench_score

    shares = {name: share_of_peak(found) for name, found in efficiency.items()}
    ours, theirs, compared = score_run(run, weights=scoring.weights, price=scoring.price, shares=shares), None, None
    if scoring.rule == MILABENCH:
        theirs = milabench_score(run, weights=scoring.weights, price=scoring.price)
    if scoring.against is not None:
        before = score_run(scoring.against, weights=scoring.weights)
        compared = msgspec.structs.replace(
            compare_scores(before, ours, scoring.against.id), doubts=doubts_about(scoring.against, run)
        )
    return Scores(ours, theirs, compared)


def is_suite(run: Run) -> bool:
    """Whether the run has benchmarks whose rates make a score: those of a suite, made here or by milabench."""
    return any(kind_of(r.benchmark).has_score or any("milabench" in x.facts for x in r.launches) for r in run.results)


def weights_of(benchmarks: Sequence[Benchmark]) -> dict[str, float]:
    """The weights of a suite's benchmarks; 0 for disabled ones."""
    return {b.name: b.weight if b.enabled else 0.0 for b in benchmarks}
