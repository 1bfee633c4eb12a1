"""The tables of a suite: scores, how devices compare, another run's scores, and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from benchwright.core.quantities import format_bytes
from benchwright.core.run import Check, CheckStatus, Result
from benchwright.core.score import BenchmarkScore, ScoreComparison, ScoreRatio, SuiteScore
from benchwright.core.status import Status
from benchwright.core.summary import WORDS
from benchwright.report.base import Report
from benchwright.report.document import OPTIONAL, Cell, Column, Field, ReportSection, ReportTable, table_of, word
from benchwright.report.score_rule import RuleScore
from benchwright.report.text.metrics import MEMORY
from benchwright.report.text.numbers import format_number, format_value, json_body, peak_share_words, tenths

DEVICES = "each device against the best"  # the title of a table
_SLOW = 0.9  # a device that is a tenth slower than the best stands out
_NAMELESS = {None, "items/s", "steps/s", "calls/s"}
_WRONG = (CheckStatus.FAILED, CheckStatus.WARNED)


def score_section(report: Report) -> ReportSection | None:
    """The scores by whichever rule was asked for, then how devices compare and another run's scores; None for what is no
    suite, and for one that measured no rates: its metrics say all there is.

    The heading is a title, then the score in words.
    """
    score, by_rule = report.score, report.by_rule
    if by_rule is not None:
        title, words, about, first = by_rule.title, list(by_rule.words), list(by_rule.about), by_rule.table
    elif score is not None and not _without_rates(score):
        title, words, first = "Score", [score_words(score)], score_table(score)
        peaks = of_peak_words(score) or no_peak_words(report)
        about = [text for text in (peaks, meaning_words(score), no_interval_words(score)) if text]
    else:
        return None
    devices = device_table(score) if score is not None else None
    compared = compared_table(report.compared) if report.compared is not None else None
    tables = tuple(table for table in (first, devices, compared) if table is not None)
    return ReportSection(heading=(title, *words), about=tuple(about), tables=tables)


def _without_rates(score: SuiteScore) -> bool:
    """Whether benchmarks succeeded, but none has a rate, as in a suite of commands that are measured by their time."""
    return all(s.value is None for s in score.benchmarks) and any(s.status is Status.OK for s in score.benchmarks)


def score_table(score: SuiteScore) -> ReportTable:
    """Peak memory: what has to fit, so the highest of all launches."""
    known = any(s.peak_bytes or s.gpu_peak_bytes for s in score.benchmarks)
    notes = (f"Peak memory is the highest of all launches. {MEMORY}.",) if known else ()
    without = lambda s: (_FIGURES_FROM, s.why or "") if s.value is None else None  # noqa: E731
    return table_of(OURS, score.benchmarks, rest=without, notes=notes)


def device_table(score: SuiteScore) -> ReportTable | None:
    """Performance of each device, or process, as a share of the best one of its benchmark; None if none had several."""
    shown = [s for s in score.benchmarks if len(s.seats) > 1]
    names = list(dict.fromkeys(seat.name for s in shown for seat in s.seats))
    if not names:
        return None
    fields = [
        Field(Column("benchmark", quoted=True), _name),
        *(Field(Column(n, right=True), _of_device(n)) for n in names),
    ]
    return table_of(fields, shown, title=DEVICES)


def _of_device(name: str) -> Callable[[BenchmarkScore], Cell]:
    def cell(s: BenchmarkScore) -> Cell:
        seat = next((seat for seat in s.seats if seat.name == name), None)
        if seat is None:
            return Cell()
        mark = "slow" if seat.relative < _SLOW else ""
        return Cell(tenths(seat.relative), seat.relative, format_value(seat.value, s.unit), mark)

    return cell


def compared_table(compared: ScoreComparison) -> ReportTable:
    """Each score against that of another run, and that of all."""
    fields: list[Field[ScoreRatio]] = [
        Field(Column("benchmark", quoted=True), lambda r: word(r.name)),
        Field(
            Column("before", "control", right=True, drop_priority=2),
            lambda r: Cell(format_number(r.control), r.control),
        ),
        Field(
            Column("now", "treatment", right=True, drop_priority=1),
            lambda r: Cell(format_number(r.treatment), r.treatment),
        ),
        Field(Column("ratio", "ratio", right=True), lambda r: Cell(f"{r.ratio:.3f}", r.ratio)),
    ]
    whole = [compared.whole] if compared.whole else []
    left = [f"without {', '.join(compared.left_out)}: no score in the same unit in both runs"]
    notes = (*(left if compared.left_out else []), *(f"⚠ {text}" for text in compared_words(compared)))
    return table_of(fields, [*compared.benchmarks, *whole], title=f"against {compared.control}", notes=notes)


def checks_table(results: Mapping[int, Result], *, every: bool) -> ReportTable:
    """Results of validation; not `every`: only failures. Trouble first."""
    found = [(n, r, c) for n, r in results.items() for c in r.checks if every or c.status in _WRONG]
    fields: list[Field[tuple[int, Result, Check]]] = [
        Field(Column("benchmark", quoted=True), lambda x: word(x[1].benchmark.name, link=f"b{x[0]}")),
        Field(Column("check"), lambda x: word(x[2].layer)),
        Field(Column("verdict"), lambda x: word(x[2].status.value.replace("_", " "), mark=_MARKS[x[2].status])),
        Field(Column("why", quoted=True), lambda x: word(x[2].explanation)),
    ]
    return table_of(fields, sorted(found, key=lambda x: x[2].status not in _WRONG), title="checks")


_MARKS = {
    CheckStatus.PASSED: "ok",
    CheckStatus.FAILED: "failed",
    CheckStatus.WARNED: "pending",
    CheckStatus.NOT_APPLICABLE: "none",
}


def score_words(score: SuiteScore) -> str:
    """`1 of 12 failed · score 3,412 over 11 of 12`; without a success, that there is none."""
    bad = sum(1 for s in score.benchmarks if s.status is Status.FAILED)
    parts = [f"{bad} of {len(score.benchmarks)} failed"] if bad else []
    skipped = sum(1 for s in score.benchmarks if s.status is Status.SKIPPED and s.weight > 0)
    if skipped:
        parts.append(f"{skipped} skipped")
    unscored = sum(1 for s in score.benchmarks if s.status is Status.OK and s.value is None and s.weight > 0)
    if unscored:
        parts.append(f"{unscored} without a rate")
    if score.missing > skipped + unscored:
        parts.append(f"{score.missing - skipped - unscored} missing")
    if score.value is None:
        weighted = "has a rate" if unscored else "succeeded"
        why = f"no benchmark with a weight {weighted}" if score.expected else "no benchmark has a weight"
        return " · ".join([*parts, f"no score: {why}"])
    over = f" over {score.counted} of {score.expected}" if score.counted < score.expected else ""
    parts.append(f"score {format_value(score.value, score_unit(score))}{over}")
    if score.price is not None and score.price_per_score is not None:
        parts.append(f"price {format_number(score.price)}, {format_number(score.price_per_score)} per point")
    return " · ".join(parts)


def meaning_words(score: SuiteScore) -> str | None:
    """The meaning and use of the score; None where there is none, or it is the rate of one benchmark."""
    if score.value is None or score.counted < 2:
        return None
    what = "score: the weighted geometric mean of what each benchmark's processes did together"
    if score_unit(score) is not None:
        return what
    units = dict.fromkeys(s.unit or "no unit" for s in _counting(score))
    mixed = f"It mixes units ({', '.join(units)})" if len(units) > 1 else "Their items are not the same things"
    return f"{what}. {mixed}, so only its ratio to another run's score has a meaning"


def _counting(score: SuiteScore) -> list[BenchmarkScore]:
    return [s for s in score.benchmarks if s.weight > 0 and s.value is not None]


def score_unit(score: SuiteScore) -> str | None:
    """Of all benchmarks that count; None if they differ, or count nameless items."""
    units = {s.unit for s in _counting(score)}
    return units.pop() if len(units) == 1 and not units & _NAMELESS else None


def of_peak_words(score: SuiteScore) -> str | None:
    """Of which peak the shares are, where there are any."""
    shares = [s.peak_share for s in score.benchmarks if s.peak_share is not None]
    if not shares:
        return None
    words = "of peak: share of what a benchmark tagged peak sustained on this machine, not of its data sheet"
    if any(share.is_of_memory for share in shares):
        words += "; (memory): of its bandwidth, which limits that benchmark more than its arithmetic does"
    return words


def no_peak_words(report: Report) -> str | None:
    """How to get shares of peak, where only the peaks are missing."""
    shares = [e for each in report.efficiency.values() for e in each]
    if not shares or any(e.peak is not None for e in shares):
        return None
    return "no share of peak: that of this machine is not known; benchwright run system --select peak measures it, once"


def no_interval_words(score: SuiteScore) -> str | None:
    """Why a score has no interval although its benchmarks have; None without such a score."""
    if score.value is None or not any(s.interval for s in score.benchmarks):
        return None
    return "no ± for the score: all benchmarks share the machine's state during this run; compare several runs"


def compared_words(compared: ScoreComparison) -> list[str]:
    """Reasons why these ratios are no conclusions."""
    if not compared.benchmarks:
        return []
    return [
        *map(str, compared.doubts),
        "no ± for ratios of separate runs; 'bw compare' says what can be concluded from them",
    ]


def score_bodies(
    score: SuiteScore | None, by_rule: RuleScore | None, compared: ScoreComparison | None
) -> dict[str, object]:
    """Scores in JSON, documented in docs/reference/scores.md; empty without scores."""
    body: dict[str, Any] = {}
    if score is not None:
        names = ("value", "expected", "counted", "failed", "missing", "failure_rate", "price", "price_per_score")
        body["score"] = {name: getattr(score, name) for name in names}
        body["score"] |= {"unit": score_unit(score), "meaning": meaning_words(score)}
        body["score"] |= {"why_no_interval": no_interval_words(score), "benchmarks": score_table(score).records()}
    if by_rule is not None:
        body[by_rule.rule] = dict(by_rule.body)
    if compared is not None:
        records = compared_table(compared).records()
        named = [{"benchmark": r.name} | x for r, x in zip(compared.benchmarks, records, strict=False)]
        whole = records[-1] if compared.whole else None
        body["compared"] = {"control": compared.control, "score": whole, "benchmarks": named}
        body["compared"] |= {"left_out": list(compared.left_out), "doubts": compared_words(compared)}
    return json_body(body)


def _name(s: BenchmarkScore) -> Cell:
    return word(s.name)


def _peak(s: BenchmarkScore) -> str:
    """Of the device if there is one, else of the processes, with how that was counted."""
    if s.gpu_peak_bytes is not None:
        return f"{format_bytes(s.gpu_peak_bytes)} GPU"
    return "" if s.peak_bytes is None else f"{format_bytes(s.peak_bytes)} {WORDS.get(s.peak_metric or '', '')}".rstrip()


def _devices(s: BenchmarkScore) -> str:
    """How many devices; without any, how many processes there were."""
    return str(s.devices) if s.devices else f"{s.processes} job{'s' if s.processes != 1 else ''}"


def _interval(s: BenchmarkScore) -> Cell:
    ends = None if s.interval is None else [s.interval.low, s.interval.high]
    return Cell(tenths(s.half_width), ends)


def _joules(s: BenchmarkScore) -> Cell:
    return Cell("" if s.joules_per_item is None else format_number(s.joules_per_item), s.joules_per_item)


def _kept(key: str, attribute: str = "") -> Field[BenchmarkScore]:
    return Field(Column(key=key), lambda s: Cell(value=getattr(s, attribute or key)))


def _peak_share(score: BenchmarkScore) -> Cell:
    share = score.peak_share
    return Cell(peak_share_words(share), share and share.value)


_FIGURES_FROM = 3
OURS: tuple[Field[BenchmarkScore], ...] = (
    Field(Column("benchmark", "benchmark", quoted=True), _name),
    Field(Column("status", "status", setting=True), lambda s: word(s.status.value, mark=s.status.value)),
    Field(
        Column("weight", "weight", right=True, drop_priority=7, setting=True), lambda s: Cell(f"{s.weight:g}", s.weight)
    ),
    Field(
        Column("rate", "median", right=True, drop_priority=1),
        lambda s: Cell(format_value(s.median or 0.0, s.unit), s.median),
    ),
    Field(Column("± 95 %", "interval_95", right=True, drop_priority=2), _interval),
    Field(Column("devices", right=True, drop_priority=5, setting=True), lambda s: Cell(_devices(s))),
    Field(Column("overlap", "overlap", right=True, drop_priority=4), lambda s: Cell(tenths(s.overlap), s.overlap)),
    Field(Column("peak memory", right=True, drop_priority=3), lambda s: Cell(_peak(s))),
    Field(Column("of peak", "of_peak", right=True, drop_priority=6), _peak_share),
    Field(Column(key="limited_by"), lambda s: Cell(value=s.peak_share and s.peak_share.limit)),
    Field(Column("J/item", "joules_per_item", right=True, drop_priority=OPTIONAL), _joules),
    Field(
        Column("score", "score", right=True),
        lambda s: Cell("" if s.value is None else format_value(s.value, s.unit, bare=True), s.value),
    ),
    _kept("why_none", "why"),
    *map(_kept, ("metric", "unit", "processes", "devices", "peak_bytes", "peak_metric", "gpu_peak_bytes")),
    Field(Column(key="per_device"), lambda s: Cell(value=msgspec.to_builtins(s.seats))),
)
