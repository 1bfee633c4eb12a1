"""The share of benchmarks that succeeded: `bw report --score success`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.report.document import Cell, Column, Field, table_of, word
from benchwright.report.score_rule import RuleScore

FIELDS: tuple[Field[Result], ...] = (
    Field(Column("benchmark", "benchmark", quoted=True), lambda r: word(r.benchmark.name)),
    Field(Column("succeeded", "succeeded"), lambda r: Cell("yes" if _counts(r) else "no", _counts(r))),
)


class SuccessRule:
    """Weights count; the price does not."""

    def score(self, run: Run, *, weights: Mapping[str, float] | None = None, price: float | None = None) -> RuleScore:
        given = {r.benchmark.name: r.benchmark.weight for r in run.results} if weights is None else weights
        total = sum(given.values())
        passed = sum(given.get(r.benchmark.name, 0.0) for r in run.results if _counts(r))
        share = passed / total if total else None
        table = table_of(FIELDS, run.results)
        return RuleScore(
            rule="success",
            title="Success",
            words=("no benchmark has a weight" if share is None else f"{share:.0%} succeeded",),
            table=table,
            body={"share": share, "benchmarks": table.records()},
        )

    def pooled(self, runs: Sequence[Run]) -> Run | None:
        return None  # each run has a share of its own


def _counts(result: Result) -> bool:
    return result.status is Status.OK
