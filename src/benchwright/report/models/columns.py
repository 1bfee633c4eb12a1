"""The figures of a model as columns of texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from benchwright.core.numbers.quantities import format_bytes, format_duration, format_prefixed
from benchwright.core.results.summary import Percentile, Summary
from benchwright.report.models.facts import checked
from benchwright.report.models.rows import ModelRow
from benchwright.report.score.screen import NONE, half_width_words, share_words
from benchwright.report.text.columns import LUXURY, Column
from benchwright.report.text.numbers import format_number

ITEMS, CALLS = "items/s", "calls/s"  # of a model whose items are not known, a rate counts calls
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
Cell = Callable[[ModelRow], str]


def value_columns(rows: Sequence[ModelRow]) -> list[tuple[Column, list[str]]]:
    """Each column with what every row has in it; empty where it has nothing. `spare`: what is least missed goes first."""
    percent = slow_percent(rows)
    head = "latency p50" if percent is None else f"latency p50 [p{percent:g}]"
    columns: list[tuple[Column, Cell]] = [
        (Column(head, right=True), lambda row: latency_words(row, percent)),
        (Column("± 95 %", right=True, spare=1), _interval),
        *((Column(unit, right=True, spare=4), _in("rate", unit)) for unit in (ITEMS, CALLS)),
        *((Column(head, right=True, spare=3), _in("throughput.streams", unit)) for head, unit in _streams(rows)),
        (Column("vs eager", right=True, spare=1), _speedup),
        (Column("error", right=True, spare=2), _error),
        (Column("build", right=True, spare=6), _build),
        (Column("memory", right=True, spare=7), lambda row: _bytes(row.figure("memory.host"))),
        (Column("device memory", right=True, spare=5), lambda row: _bytes(row.figure("memory.device"))),
        (Column("of peak", right=True, spare=8), lambda row: share_words(row.of_peak)),
        (Column("FLOP/s", right=True, spare=LUXURY), _achieved),
        (Column("first result", right=True, spare=LUXURY + 1), _first_result),
    ]
    return [(column, [cell(row) for row in rows]) for column, cell in columns]


def _interval(row: ModelRow) -> str:
    half = row.latency.half_width if row.latency is not None else None
    return "" if half is None else half_width_words(half)


def _streams(rows: Sequence[ModelRow]) -> list[tuple[str, str]]:
    """`4 streams`, in items; `4 streams, calls/s` of rows whose items are not known."""
    found = (s.labels.get("streams", "") for row in rows if (s := row.figure("throughput.streams")))
    head = f"{next(found, '')} streams".strip()
    return [(head, ITEMS), (f"{head}, {CALLS}", CALLS)]


def _in(metric: str, unit: str) -> Cell:
    """The figure of rows that have it in that unit."""

    def words(row: ModelRow) -> str:
        figure = row.figure(metric)
        return _number(figure) if figure is not None and figure.unit == unit else ""

    return words


def _number(summary: Summary | None) -> str:
    return "" if summary is None else format_number(summary.value)


def _bytes(summary: Summary | None) -> str:
    """`≤` where only a bound is known."""
    if summary is None or not math.isfinite(summary.value):
        return ""
    return ("≤ " if "bound" in summary.labels else "") + format_bytes(summary.value)


def _speedup(row: ModelRow) -> str:
    """`9.30 ?` where the two were not measured under like conditions."""
    if row.speedup is None:
        return ""
    words = f"{row.speedup:.2f}" if row.speedup < 99.95 else format_number(round(row.speedup))
    return words if row.speedup_doubt is None else f"{words} ?"


def speedup_doubt(row: ModelRow) -> str | None:
    """What the question mark means, and what to do."""
    if row.speedup is None or row.speedup_doubt is None:
        return None
    remedy = "measure again on a quiet machine, or alternate the launches: --interleave --repeat 6"
    return f"'vs eager' is doubtful: {row.speedup_doubt}; {remedy}"


def _error(row: ModelRow) -> str:
    """Relative L2 and what the check says: ✓ within the tolerance, ✗ beyond it, ~ nothing is claimed."""
    found = checked(row.result)
    if found is None:
        return ""
    mark = "✗" if not found.ok else "✓" if found.claimed else "~"
    if found.error is None and found.equal is not None:
        return f"{found.equal * 100:.4g} % {mark}"  # whole numbers, such as classes: how many are equal
    return f"{error_words(found.error)} {mark}".strip()


def _build(row: ModelRow) -> str:
    seconds = row.build_s
    return "" if seconds is None else format_duration(seconds) if seconds else "cached"


def _achieved(row: ModelRow) -> str:
    achieved = row.flop_per_s
    return "" if achieved is None else format_prefixed(achieved, "FLOP/s").removesuffix("FLOP/s").strip()


def _first_result(row: ModelRow) -> str:
    first = row.figure("time.to_first_result")
    return "" if first is None else format_duration(first.value)


def error_words(error: float | None) -> str:
    """`2e-6`."""
    if error is None:
        return ""
    return re.sub(r"e([+-])0*(\d)", r"e\1\2", f"{error:.0e}") if error and math.isfinite(error) else f"{error:g}"


def latency_words(row: ModelRow, percent: float | None) -> str:
    """`41.2 ms [44.0]`: the median, and the slow end in the same unit; `[–]` where too few samples tell that."""
    latency = row.latency
    if latency is None:
        return ""
    size, unit = next((s for s in _SCALES if abs(latency.value) >= s[0]), _SCALES[-1])
    middle = latency.value / size
    decimals = max(0, 3 - math.floor(math.log10(abs(middle)))) if middle and math.isfinite(middle) else 0
    words = f"{middle:,.{decimals}f} {unit}"
    if percent is None:
        return words
    found = _bounded(latency).get(percent)
    return f"{words} [{NONE if found is None else format(found.value / size, f',.{decimals}f')}]"


def slow_percent(rows: Sequence[ModelRow]) -> float | None:
    """The outermost percentile of latency that at least half of the rows have enough samples for."""
    known = [percent for row in rows if row.latency is not None for percent in _bounded(row.latency)]
    return max((percent for percent in known if 2 * known.count(percent) >= len(rows)), default=None)


def _bounded(latency: Summary) -> dict[float, Percentile]:
    return {p.percent: p for p in latency.percentiles if p.bound is not None}
