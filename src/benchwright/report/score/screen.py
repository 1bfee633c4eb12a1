"""A suite's scores as text: the table of its benchmarks, how the devices compare, and the one line that sums it up."""

from __future__ import annotations

import math
import textwrap

from benchwright.core.numbers.quantities import format_bytes
from benchwright.core.results.check import CheckStatus
from benchwright.core.results.peak_memory import WORDS
from benchwright.core.results.score import BenchmarkScore, MilabenchScore, ScoreComparison, SuiteScore
from benchwright.core.run import Result
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.text.columns import LUXURY, Column, Row, table
from benchwright.report.text.numbers import format_number, format_value
from benchwright.report.text.one_line import clip

NONE = "–"
_OURS = (
    Column("bench"),
    Column("status"),
    Column("rate", right=True, spare=1),
    Column("± 95 %", right=True, spare=2),
    Column("devices", right=True, spare=5),
    Column("overlap", right=True, spare=4),
    Column("peak mem", right=True, spare=3),
    Column("of peak", right=True, spare=6),
    Column("J/item", right=True, spare=LUXURY),
    Column("score", right=True),
)
_THEIRS = (
    Column("bench"),
    Column("fail", right=True),
    Column("n", right=True),
    Column("ngpu", right=True, spare=4),
    Column("perf", right=True, spare=1),
    Column("sem%", right=True, spare=2),
    Column("std%", right=True, spare=2),
    Column("peak_memory", right=True, spare=5),
    Column("score", right=True),
    Column("weight", right=True, spare=3),
)


def score_lines(report: Report) -> list[str]:
    """The table, by whichever rule was asked for, and how the devices compare if that was."""
    if report.milabench is not None:
        lines = milabench_table(report.milabench, report.width)
    elif report.score is not None:
        lines = score_table(report.score, report.width)
    else:
        return []
    if report.per_device and report.score is not None:
        lines += ["", *device_table(report.score, report.width)]
    if report.compared is not None:
        lines += ["", *comparison_table(report.compared, report.width)]
    return lines


def score_table(score: SuiteScore, width: int) -> list[str]:
    return table(_OURS, [_row(s) for s in score.benchmarks], width) if score.benchmarks else []


def _row(s: BenchmarkScore) -> Row:
    word = "FAILED" if s.status is Status.FAILED else s.status.value
    if s.value is None:
        return Row((s.name, word), s.why or "")
    return Row(
        (
            s.name,
            word,
            format_value(s.median or 0.0, s.unit),
            half_width_words(s.half_width),
            device_words(s),
            "" if s.overlap is None else f"{s.overlap * 100:.1f} %",
            peak_words(s),
            share_words(s.of_peak),
            "" if s.joules_per_item is None else format_number(s.joules_per_item),
            format_number(s.value),
        )
    )


def half_width_words(half: float | None) -> str:
    return NONE if half is None else f"{half * 100:.1f} %"


def device_words(s: BenchmarkScore) -> str:
    """How many devices; without any, how many processes there were."""
    return str(s.devices) if s.devices else f"{s.processes} job{'s' if s.processes != 1 else ''}"


def peak_words(s: BenchmarkScore) -> str:
    """Of the device if there is one, else of the processes, with how that was counted."""
    if s.gpu_peak_bytes is not None:
        return f"{format_bytes(s.gpu_peak_bytes)} GPU"
    return "" if s.peak_bytes is None else f"{format_bytes(s.peak_bytes)} {WORDS.get(s.peak_metric or '', '')}".rstrip()


def share_words(share: float | None) -> str:
    """Of the machine's peak: whole percents, but of little a tenth."""
    return "" if share is None else f"{share * 100:.{0 if share >= 0.1 else 1}f} %"


def score_words(score: SuiteScore) -> str:
    """`1 of 12 failed · score 3,412 over 11 of 12`; without a success, that there is none."""
    bad = sum(1 for s in score.benchmarks if s.status is Status.FAILED)
    parts = [f"{bad} of {len(score.benchmarks)} failed"] if bad else []
    skipped = sum(1 for s in score.benchmarks if s.status is Status.SKIPPED and s.weight > 0)
    if skipped:
        parts.append(f"{skipped} skipped")
    if score.missing > skipped:
        parts.append(f"{score.missing - skipped} missing")
    if score.value is None:
        why = "no benchmark has a weight" if not score.expected else "nothing that counts succeeded"
        return " · ".join([*parts, f"no score: {why}"])
    over = f" over {score.counted} of {score.expected}" if score.counted < score.expected else ""
    parts.append(f"score {format_number(score.value)}{over}")
    if score.price is not None and score.price_per_score is not None:
        parts.append(f"price {format_number(score.price)}, {format_number(score.price_per_score)} for each point")
    return " · ".join(parts)


def of_peak_words(score: SuiteScore) -> str | None:
    """Of which peak the shares are, where there are any."""
    if all(s.of_peak is None for s in score.benchmarks):
        return None
    return "of peak: of what a benchmark tagged peak sustained on this machine, not of its data sheet"


def no_interval_words(score: SuiteScore) -> str | None:
    """Why a score has no interval although its benchmarks have; None without such a score."""
    if score.value is None or not any(s.interval for s in score.benchmarks):
        return None
    return "no ± for the score: all benchmarks share the machine's state during this run; compare several runs"


def compared_words(compared: ScoreComparison) -> list[str]:
    """What keeps these ratios from being conclusions."""
    if not compared.benchmarks:
        return []
    return [*compared.doubts, "no ± for ratios of separate runs; 'bw compare' says what can be concluded from them"]


def device_table(score: SuiteScore, width: int) -> list[str]:
    """What each device, or process, does, as a share of the best one of its benchmark."""
    shown = [s for s in score.benchmarks if len(s.seats) > 1]
    names = list(dict.fromkeys(seat.name for s in shown for seat in s.seats))
    if not names:
        return [" no benchmark ran on several devices"]
    cells = {s.name: {seat.name: f"{seat.relative * 100:.1f} %" for seat in s.seats} for s in shown}
    wide = 8
    longest = min(max(len(s.name) for s in shown), 24)
    each = max(1, (width - 1 - longest) // wide)
    lines = []
    for start in range(0, len(names), each):
        some = names[start : start + each]
        columns = [Column("bench"), *(Column(name.rjust(6), right=True) for name in some)]
        rows = [Row((s.name, *(cells[s.name].get(name, NONE) for name in some))) for s in shown]
        lines += table(columns, rows, width)
    return lines


def comparison_table(compared: ScoreComparison, width: int) -> list[str]:
    """Each score against that of another run, and that of all."""
    columns = (
        Column("bench"),
        Column("before", right=True, spare=2),
        Column("now", right=True, spare=1),
        Column("ratio", right=True),
    )
    rows = [
        Row(
            (
                r.name,
                format_number(r.control),
                format_number(r.treatment),
                f"{r.ratio:.3f}",
            )
        )
        for r in (*compared.benchmarks, *([compared.whole] if compared.whole else []))
    ]
    lines = [clip(f" against {compared.control}:", width), *(table(columns, rows, width) if rows else [])]
    if compared.left_out:
        lines.append(clip(f" without {', '.join(compared.left_out)}: no score of the same unit in both runs", width))
    for text in compared_words(compared):
        lines += textwrap.wrap(f" ⚠ {text}", width, subsequent_indent="   ", break_on_hyphens=False)
    return lines


def milabench_table(score: MilabenchScore, width: int) -> list[str]:
    """The columns of their report."""
    rows = [
        Row(
            (
                r.name,
                str(r.fail),
                str(r.n),
                str(r.ngpu),
                two_digits(r.perf),
                share(r.sem),
                share(r.std),
                "" if r.peak_memory_mib is None else f"{r.peak_memory_mib:.0f}",
                two_digits(r.score),
                f"{r.counts:.2f}",
            )
        )
        for r in score.rows
    ]
    return table(_THEIRS, rows, width) if rows else []


def milabench_words(score: MilabenchScore) -> list[str]:
    """Failure rate, score and price as in their report."""
    verdict = "PASS" if score.passed else "FAIL"
    lines = [f" Failure rate: {score.failure_rate * 100:.2f}% ({verdict})", f" Score: {two_digits(score.value)}"]
    if score.price is not None:
        lines.append(f" Price: {score.price:.2f}")
        if score.price_per_score is not None:
            lines.append(f" Price / Score: {score.price_per_score:.2f}")
    return lines


def closing_lines(report: Report) -> list[str]:
    """What sums up the suite."""
    if report.milabench is not None:
        return milabench_words(report.milabench)
    if report.score is None:
        return []
    said = [of_peak_words(report.score), no_interval_words(report.score), score_words(report.score)]
    return [line for text in said if text for line in textwrap.wrap(f" {text}", report.width, subsequent_indent="   ")]


def warnings_of(result: Result) -> list[str]:
    """The checks that warn; one that fails is the benchmark's own reason."""
    return [f"{c.layer}: {c.explanation}" for c in result.checks if c.status is CheckStatus.WARNED]


def two_digits(value: float) -> str:
    """As in milabench's report."""
    return f"{value:.2f}" if math.isfinite(value) else NONE


def share(value: float) -> str:
    """As in milabench's report."""
    return f"{value * 100:.1f}%" if math.isfinite(value) else NONE
