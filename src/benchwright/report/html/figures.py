"""Numbers as the report writes them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from benchwright.core.numbers.quantities import format_duration
from benchwright.core.results.summary import Summary
from benchwright.report.text.headline_metrics import metric_label, telling
from benchwright.report.text.numbers import format_ends, format_number, format_value

# What is measured beside the benchmark itself; shown among all metrics and over time, not in the first table.
_LONGEST_UNIT = 16
NOISY = 0.05  # launches that differ by more than this make a difference of a few per cent invisible


def figure(value: float, unit: str | None) -> str:
    """A number with its unit, which is cut where it is long."""
    return format_value(value, short(unit, _LONGEST_UNIT) if unit else None)


def ends(low: float, high: float, unit: str | None) -> tuple[str, str]:
    """Of a range: without a unit where it is plain."""
    return format_ends(low, high, short(unit, _LONGEST_UNIT) if unit else None)


def best(summary: Summary) -> str:
    """Beside the median, whose unit it shares where it says none."""
    return ends(summary.best, summary.value, summary.unit)[0]


def short(text: str, most: int) -> str:
    """`text`, cut where it is longer than there is room for."""
    return text if len(text) <= most else text[: most - 1] + "…"


def hint(text: str, most: int = 32) -> str | None:
    """What to show under the pointer: `text` if it may be cut off, else nothing."""
    return text if len(text) > most else None


def percent(fraction: float) -> str:
    """`0.4 %`, `33 %`."""
    share = fraction * 100
    return f"{share:.1f} %" if share < 10 else f"{format_number(round(share))} %"


def plain(value: float) -> float | None:
    """`value` in nine digits, or None for what JSON and sorting cannot hold."""
    return float(f"{value:.9g}") if math.isfinite(value) else None


def shown_first(summaries: list[Summary]) -> list[Summary]:
    """What the user asked for or the loop measured; if there is nothing else, how long it took."""
    return telling(summaries)


def metric_name(metric: str, labels: Mapping[str, str]) -> str:
    """`gpu.memory [1]`: with what tells it from others of the same name."""
    seat = ", ".join(f"{key} {value}" for key, value in labels.items() if key not in ("loop", "bound", "ranks"))
    name = metric_label(metric)
    return f"{name} [{seat}]" if seat else name


def spread(summary: Summary) -> float | None:
    """How far launches are apart: half the interval, or half the range where there is none; as a fraction."""
    if summary.half_width is not None:
        return summary.half_width
    finite = [v for v in summary.values if math.isfinite(v)]
    if len(finite) < 2 or not summary.value or not math.isfinite(summary.value):
        return None
    return (max(finite) - min(finite)) / 2 / abs(summary.value)


def is_noisy(summary: Summary) -> bool:
    return (apart := spread(summary)) is not None and apart > NOISY


def moment(text: str) -> str:
    """`15 November 2026, 03:39 UTC+01:00`; anything that is no time stays as it is."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = when.tzname() or ""
    return f"{when.day} {when:%B %Y, %H:%M} {zone}".strip()


def time_between(start: str, end: str | None) -> str:
    """As exact as the two times are: most tell whole seconds."""
    seconds = seconds_between(start, end)
    if seconds is None or seconds < 0:
        return "–"
    if not seconds.is_integer():
        return format_duration(seconds)
    return "under 1 s" if seconds < 1 else f"{seconds:.0f} s" if seconds < 100 else format_duration(seconds)


def seconds_between(start: str, end: str | None) -> float | None:
    try:
        return None if end is None else (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return None


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 launch`, `1,200 launches`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
