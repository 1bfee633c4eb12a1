"""The scores a report shows, and their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from benchwright.analysis.score import compare_scores, doubts_about, score_run
from benchwright.core.benchmark import Benchmark
from benchwright.core.efficiency import Efficiency, share_of_peak
from benchwright.core.run import Run
from benchwright.core.score import ScoreComparison, SuiteScore
from benchwright.kinds.registry import kind_of
from benchwright.report.score_rule import SCORES, RuleScore, ScoreRule

OURS = "ours"


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """`rule` None: ours, where the run is one of a suite. `weights`: by name, instead of the run's own."""

    rule: str | None = None
    weights: Mapping[str, float] | None = None
    price: float | None = None
    per_device: bool = False
    against: Run | None = None  # a run to compare with


class Scores(msgspec.Struct, frozen=True):
    ours: SuiteScore | None = None
    by_rule: RuleScore | None = None
    compared: ScoreComparison | None = None


def scores_of(run: Run, scoring: Scoring, efficiency: Mapping[str, Sequence[Efficiency]]) -> Scores:
    """Only suites have scores, unless an option about scores was given."""
    if scoring == Scoring() and not is_suite(run):
        return Scores()

    shares = {name: share_of_peak(found) for name, found in efficiency.items()}
    ours, by_rule, compared = score_run(run, weights=scoring.weights, price=scoring.price, shares=shares), None, None
    if (rule := rule_named(scoring.rule)) is not None:
        by_rule = rule.score(run, weights=scoring.weights, price=scoring.price)
    if scoring.against is not None:
        before = score_run(scoring.against, weights=scoring.weights)
        compared = msgspec.structs.replace(
            compare_scores(before, ours, scoring.against.id), doubts=doubts_about(scoring.against, run)
        )
    return Scores(ours, by_rule, compared)


def rule_named(name: str | None) -> ScoreRule | None:
    """None for our own."""
    return None if name in (None, OURS) else SCORES.load(name, where="--score")()


def is_suite(run: Run) -> bool:
    """Whether the run has benchmarks whose rates make a score: those of a suite, made here or by a tool with a rule."""
    if any(kind_of(r.benchmark).has_score for r in run.results):
        return True
    keys = {key for r in run.results for x in r.launches for key in x.facts}
    return bool(keys) and not keys.isdisjoint(SCORES.names())


def weights_of(benchmarks: Sequence[Benchmark]) -> dict[str, float]:
    """The weights of a suite's benchmarks; 0 for disabled ones."""
    return {b.name: b.weight if b.enabled else 0.0 for b in benchmarks}
