"""A suite's scores as tables in Markdown. Cells hold text that is already safe there."""

from __future__ import annotations

from collections.abc import Callable

from benchwright.core.results.check import CheckStatus
from benchwright.core.results.score import BenchmarkScore, MilabenchScore, ScoreComparison, SuiteScore
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.score.screen import (
    NONE,
    compared_words,
    device_words,
    half_width_words,
    milabench_words,
    no_interval_words,
    of_peak_words,
    peak_words,
    score_words,
    share,
    share_words,
    two_digits,
)
from benchwright.report.text.numbers import format_number, format_value

Cells = list[str]
_OURS = ["benchmark", "status", "rate", "± 95 %", "devices", "overlap", "peak memory", "of peak", "weight", "score"]
_THEIRS = ["benchmark", "fail", "n", "ngpu", "perf", "sem%", "std%", "peak_memory", "score", "weight"]


class Tables:
    """`code` and `plain` make text of others safe; `table` sets the last columns to the right."""

    def __init__(
        self, code: Callable[[str], str], plain: Callable[[str], str], table: Callable[[Cells, list[Cells], int], str]
    ) -> None:
        self._code, self._plain, self._table = code, plain, table

    def blocks(self, report: Report) -> list[str]:
        """The scores, how the devices compare, and what validation found that did not pass."""
        found: list[str] = []
        if report.milabench is not None:
            found += self._theirs(report.milabench)
        elif report.score is not None:
            found += self._ours(report.score)
        if report.per_device and report.score is not None:
            found += self._devices(report.score)
        if report.compared is not None:
            found += self._compared(report.compared)
        return found + (self._checks(report) if found else [])

    def _ours(self, score: SuiteScore) -> list[str]:
        rows = [self._row(s) for s in score.benchmarks]
        said = [self._plain(words) for words in (no_interval_words(score), of_peak_words(score)) if words]
        table = [self._table(_OURS, rows, 8)] if rows else []
        return [f"**{self._plain(score_words(score))}**", *table, *said]

    def _row(self, s: BenchmarkScore) -> Cells:
        word = f"**{s.status.value}**" if s.status is Status.FAILED else s.status.value
        if s.value is None:
            return [self._code(s.name), word, self._code(s.why or ""), *[""] * 5, f"{s.weight:g}", NONE]
        return [
            self._code(s.name),
            word,
            self._plain(format_value(s.median or 0.0, s.unit)),
            half_width_words(s.half_width),
            device_words(s),
            NONE if s.overlap is None else f"{s.overlap * 100:.1f} %",
            peak_words(s) or NONE,
            share_words(s.of_peak) or NONE,
            f"{s.weight:g}",
            format_number(s.value),
        ]

    def _devices(self, score: SuiteScore) -> list[str]:
        shown = [s for s in score.benchmarks if len(s.seats) > 1]
        names = list(dict.fromkeys(seat.name for s in shown for seat in s.seats))
        if not names:
            return []
        cells = {s.name: {seat.name: f"{seat.relative * 100:.1f} %" for seat in s.seats} for s in shown}
        rows = [[self._code(s.name), *(cells[s.name].get(name, NONE) for name in names)] for s in shown]
        return ["Each device against the best:", self._table(["benchmark", *names], rows, len(names))]

    def _compared(self, compared: ScoreComparison) -> list[str]:
        rows = [
            [
                self._code(r.name),
                format_number(r.control),
                format_number(r.treatment),
                f"{r.ratio:.3f}",
            ]
            for r in (*compared.benchmarks, *([compared.whole] if compared.whole else []))
        ]
        doubts = "\n".join(f"- ⚠ {self._plain(text)}" for text in compared_words(compared))
        table = [self._table(["benchmark", "before", "now", "ratio"], rows, 3)] if rows else []
        return [f"Against {self._code(compared.control)}:", *table, *([doubts] if doubts else [])]

    def _theirs(self, score: MilabenchScore) -> list[str]:
        rows = [
            [
                self._code(r.name),
                *(str(n) for n in (r.fail, r.n, r.ngpu)),
                two_digits(r.perf),
                share(r.sem),
                share(r.std),
                NONE if r.peak_memory_mib is None else f"{r.peak_memory_mib:.0f}",
                two_digits(r.score),
                f"{r.counts:g}",
            ]
            for r in score.rows
        ]
        words = " ·".join(line for line in milabench_words(score)).strip()
        return [f"**{self._plain(words)}**", *([self._table(_THEIRS, rows, 9)] if rows else [])]

    def _checks(self, report: Report) -> list[str]:
        rows = [
            [self._code(r.benchmark.name), c.layer, c.status.value, self._code(c.explanation)]
            for r in report.run.results
            for c in r.checks
            if c.status in (CheckStatus.FAILED, CheckStatus.WARNED)
        ]
        return [self._table(["benchmark", "check", "verdict", "why"], rows, 0)] if rows else []
