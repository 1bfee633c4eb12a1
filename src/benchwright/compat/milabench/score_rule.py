"""`--score milabench`: the figures of milabench's report, as it shows them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from benchwright.compat.milabench.score import MilabenchRow, MilabenchScore, milabench_score
from benchwright.core.launches import worst_overlap
from benchwright.core.note import Note
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.report.document import NONE, Cell, Column, Field, table_of, word
from benchwright.report.score_rule import RuleScore
from benchwright.runs.assembly import status_of


def pooled_run(runs: Sequence[Run]) -> Run:
    """As milabench's report reads several folders: a benchmark has the processes of all. A run given twice counts once."""
    distinct = list({run.unique_id: run for run in runs}.values())
    if len(distinct) == 1:
        return distinct[0]
    results: dict[str, list[Result]] = {}
    begin = 0  # the launches of a run come after those of the runs before it
    for run in distinct:
        for result in run.results:
            launches = tuple(replace(x, position=begin + x.position) for x in result.launches)
            results.setdefault(result.benchmark.name, []).append(replace(result, launches=launches))
        begin += 1 + max((x.position for r in run.results for x in r.launches), default=-1)
    pooled = tuple(_pooled(same) for same in results.values())
    ends = [run.ended for run in distinct]
    return Run(
        id=" + ".join(run.id for run in distinct),
        name=" + ".join(run.name for run in distinct),
        started=min(run.started for run in distinct),
        ended=max((end for end in ends if end), default=None) if all(ends) else None,
        folder=", ".join(run.folder for run in distinct),
        status=status_of([result.status for result in pooled]),
        machine=distinct[-1].machine,
        results=pooled,
        labels=dict(set.intersection(*(set(run.labels.items()) for run in distinct))),
        notes=tuple(_notes(distinct)),
    )


def _pooled(results: Sequence[Result]) -> Result:
    launches = tuple(x for result in results for x in result.launches)
    order = (Status.FAILED, Status.INTERRUPTED, Status.PENDING, Status.OK, Status.SKIPPED)
    worst = min(results, key=lambda result: order.index(result.status))
    checks = tuple(dict.fromkeys(check for result in results for check in result.checks))
    benchmark, overlap = results[-1].benchmark, worst_overlap(launches)
    return replace(worst, benchmark=benchmark, launches=launches, overlap=overlap, checks=checks)


def _notes(runs: Sequence[Run]) -> list[Note]:
    found = list(dict.fromkeys(note for run in runs for note in run.notes))
    found.append(
        Note(
            text=f"{len(runs)} runs pooled as milabench does: {', '.join(os.path.basename(run.folder) for run in runs)}"
        )
    )
    if len({run.machine.fingerprint for run in runs if run.machine.known}) > 1:
        found.append(Note(text="the pooled runs are from different machines"))
    return found


class MilabenchRule:
    """A score that counts warm-up and takes failures as zero; several runs are one."""

    def score(self, run: Run, *, weights: Mapping[str, float] | None = None, price: float | None = None) -> RuleScore:
        found = milabench_score(run, weights=weights, price=price)
        table = table_of(FIELDS, found.rows)
        named = {name: getattr(found, name) for name in ("failure_rate", "passed", "price", "price_per_score")}
        rest = {"left_out": list(found.left_out), "benchmarks": table.records()}
        return RuleScore(
            rule="milabench",
            title="Score, as milabench computes it",
            words=tuple(_words(found)),
            table=table,
            about=tuple(f"not in milabench's report: {text}" for text in found.left_out),
            body={"score": found.value, **named, **rest},
        )

    def pooled(self, runs: Sequence[Run]) -> Run | None:
        return pooled_run(runs)


def _words(score: MilabenchScore) -> list[str]:
    """Failure rate, score and price as in their report."""
    verdict = "PASS" if score.passed else "FAIL"
    words = [f"Failure rate: {score.failure_rate * 100:.2f}% ({verdict})", f"Score: {_two_digits(score.value)}"]
    if score.price is not None:
        words.append(f"Price: {score.price:.2f}")
        if score.price_per_score is not None:
            words.append(f"Price / Score: {score.price_per_score:.2f}")
    return words


def _two_digits(value: float) -> str:
    """As in milabench's report."""
    return f"{value:.2f}" if math.isfinite(value) else NONE


def _share(value: float) -> str:
    """As in milabench's report."""
    return f"{value * 100:.1f}%" if math.isfinite(value) else NONE


def _of_row(
    title: str, text: Callable[[MilabenchRow], str], key: str = "", drop_priority: int = 0
) -> Field[MilabenchRow]:
    def cell(row: MilabenchRow) -> Cell:
        value = getattr(row, key) if key else None
        return Cell(text(row), value)

    return Field(Column(title, key, right=True, drop_priority=drop_priority), cell)


def _memory(row: MilabenchRow) -> str:
    return "" if row.peak_memory_mib is None else f"{row.peak_memory_mib:.0f}"


def _two_digits_or_none(value: float | None) -> str:
    return "" if value is None else _two_digits(value)


def _per_device(row: MilabenchRow) -> Cell:
    return Cell(value=row.per_device)


FIELDS: tuple[Field[MilabenchRow], ...] = (
    Field(Column("benchmark", "benchmark", quoted=True), lambda r: word(r.name)),
    _of_row("fail", lambda r: str(r.fail), "fail"),
    _of_row("n", lambda r: str(r.n), "n"),
    _of_row("ngpu", lambda r: str(r.ngpu), "ngpu", 4),
    _of_row("perf", lambda r: _two_digits(r.perf), "perf", 1),
    _of_row("sem%", lambda r: _share(r.sem), "sem", 2),
    _of_row("std%", lambda r: _share(r.std), "std", 2),
    _of_row("peak_memory", _memory, "peak_memory_mib", 5),
    _of_row("score", lambda r: _two_digits(r.score), "score"),
    _of_row("weight", lambda r: f"{r.weight:.2f}", "weight", 3),
    _of_row("enabled", lambda r: "" if r.enabled else "no", "enabled", 3),
    _of_row("energy", lambda r: _two_digits_or_none(r.energy_kj), "energy_kj", 6),
    _of_row("perf_watt", lambda r: _two_digits_or_none(r.perf_watt), "perf_watt", 6),
    Field(Column(key="per_device"), _per_device),
)
