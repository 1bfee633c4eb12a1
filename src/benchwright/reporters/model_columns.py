"""The figures of a model as columns of texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from benchwright.domain.quantities import format_bytes, format_duration, format_prefixed
from benchwright.domain.summary import Percentile, Summary
from benchwright.reporters.columns import LUXURY, Column
from benchwright.reporters.model_facts import checked
from benchwright.reporters.model_rows import ModelRow
from benchwright.reporters.numbers import format_number
from benchwright.reporters.score import NONE, half_width_words, share_words

PLAIN_ITEMS = "steps/s"  # the rate of a loop whose items are not known
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
Cell = Callable[[ModelRow], str]


def value_columns(rows: Sequence[ModelRow]) -> list[tuple[Column, list[str]]]:
    """Each column with what every row has in it; empty where it has nothing. `spare`: what is least missed goes first."""
    percent = slow_percent(rows)
    head = "latency p50" if percent is None else f"latency p50 [p{percent:g}]"
    steps = bool(rows) and not any(map(_in_items, rows))
    streams = next((s.labels.get("streams", "") for row in rows if (s := row.figure("throughput.streams"))), "")
    many = f"{streams} streams".strip()
    columns: list[tuple[Column, Cell]] = [
        (Column(head, right=True), lambda row: latency_words(row, percent)),
        (Column("± 95 %", right=True, spare=1), _interval),
        (Column("calls/s" if steps else "items/s", right=True, spare=4), _rate(steps)),
        (Column(many, right=True, spare=3), lambda row: _number(row.figure("throughput.streams"))),
        (Column("vs eager", right=True, spare=1), _speedup),
        (Column("error", right=True, spare=2), _error),
        (Column("build", right=True, spare=6), _build),
        (Column("memory", right=True, spare=7), lambda row: _bytes(row.figure("memory.host"))),
        (Column("device memory", right=True, spare=5), lambda row: _bytes(row.figure("memory.device"))),
        (Column("of peak", right=True, spare=8), lambda row: share_words(e.share if (e := row.arithmetic) else None)),
        (Column("FLOP/s", right=True, spare=LUXURY), _achieved),
        (Column("first result", right=True, spare=LUXURY + 1), _first_result),
    ]
    return [(column, [cell(row) for row in rows]) for column, cell in columns]


def _interval(row: ModelRow) -> str:
    half = row.latency.half_width if row.latency is not None else None
    return "" if half is None else half_width_words(half)


def _rate(steps: bool) -> Cell:
    """Of items; of calls only where no row knows its items."""

    def words(row: ModelRow) -> str:
        return _number(row.figure("rate")) if _in_items(row) != steps else ""

    return words


def _in_items(row: ModelRow) -> bool:
    """Whether its rate is that of items; of an unknown number of them, or of none, it is that of calls."""
    rate = row.figure("rate")
    return bool(row.items) and rate is not None and rate.unit != PLAIN_ITEMS


def _number(summary: Summary | None) -> str:
    return "" if summary is None else format_number(summary.value)


def _bytes(summary: Summary | None) -> str:
    """`≤` where only a bound is known."""
    if summary is None or not math.isfinite(summary.value):
        return ""
    return ("≤ " if "bound" in summary.labels else "") + format_bytes(summary.value)


def _speedup(row: ModelRow) -> str:
    if row.speedup is None:
        return ""
    return f"{row.speedup:.2f}" if row.speedup < 99.95 else format_number(round(row.speedup))


def _error(row: ModelRow) -> str:
    """Relative L2 and what the check says: ✓ within the tolerance, ✗ beyond it, ~ outputs differ from call to call."""
    found = checked(row.result)
    if found is None:
        return ""
    mark = "✗" if not found.ok else "✓" if found.deterministic else "~"
    if found.error is None and found.equal is not None:
        return f"{found.equal * 100:.4g} % {mark}"  # whole numbers, such as classes: how many are equal
    return f"{error_words(found.error)} {mark}".strip()


def _build(row: ModelRow) -> str:
    seconds = row.build_s
    return "" if seconds is None else format_duration(seconds) if seconds else "cached"


def _achieved(row: ModelRow) -> str:
    e = row.arithmetic
    return "" if e is None else format_prefixed(e.achieved, e.unit).removesuffix("FLOP/s").strip()


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
