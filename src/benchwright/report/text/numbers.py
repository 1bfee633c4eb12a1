"""Numbers, shares and times as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from benchwright.core.efficiency import PeakShare
from benchwright.core.quantities import format_bytes, format_duration, format_prefixed

_LONGEST_UNIT = 16
_PREFIXED = ("FLOP", "FLOP/s", "B/s")  # counted in giga and tera, as everybody does


def format_value(value: float, unit: str | None, *, bare: bool = False) -> str:
    """A number with its unit; bytes, arithmetic and seconds below one in the unit that reads well; `bare`: without the unit
    where it is plain."""
    if unit == "B" and math.isfinite(value) and value >= 0:
        return format_bytes(value)
    if unit in _PREFIXED:
        return format_prefixed(value, unit, digits=4)
    if unit == "s" and 0 < abs(value) < 1:
        size = abs(value)
        scale, short = (1e3, "ms") if size >= 1e-3 else (1e6, "µs") if size >= 1e-6 else (1e9, "ns")
        return f"{format_number(value * scale)} {short}"
    return format_number(value) if bare or not unit else f"{format_number(value)} {unit}"


def format_ends(low: float, high: float, unit: str | None) -> tuple[str, str]:
    """Both ends of a range, without a unit where it is plain: `900 ms` and `1.1 s`, since each may be in another."""
    bare = unit != "s" or min(abs(low), abs(high)) >= 1
    return format_value(low, unit, bare=bare), format_value(high, unit, bare=bare)


def short_unit(unit: str | None) -> str | None:
    """Cut where it is long, for where room is short."""
    return unit if unit is None or len(unit) <= _LONGEST_UNIT else unit[: _LONGEST_UNIT - 1] + "…"


def format_number(value: float) -> str:
    """Four significant digits, thousands separated."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}" if size >= 10_000 else f"{value:,.1f}"
    if size >= 0.01 or size == 0:
        return f"{value:.4g}"
    return f"{value:.3e}"


def percent(fraction: float) -> str:
    """`0.4 %`, `33 %`."""
    share = fraction * 100
    return f"{share:.1f} %" if share < 10 else f"{format_number(round(share))} %"


def tenths(fraction: float | None) -> str:
    """`99.7 %`; nothing for None."""
    return "" if fraction is None else f"{fraction * 100:.1f} %"


def share_words(share: float | None) -> str:
    """Of the machine's peak: whole percents, but of little a tenth; nothing for None."""
    return "" if share is None else f"{share * 100:.{0 if share >= 0.1 else 1}f} %"


def peak_share_words(share: PeakShare | None) -> str:
    """`43 %`, or `11 % (memory)` where bandwidth limits more than arithmetic."""
    if share is None:
        return ""
    return share_words(share.value) + (" (memory)" if share.is_of_memory else "")


def plain_number(value: float | None) -> float | None:
    """`value` in nine digits, or None for what JSON and sorting cannot hold."""
    return float(f"{value:.9g}") if value is not None and math.isfinite(value) else None


def json_body(body: Mapping[str, object]) -> dict[str, object]:
    """The same with null for every number that is not finite, since JSON has none of them."""
    return {key: _json_value(value) for key, value in body.items()}


def _json_value(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return json_body(value)
    return [_json_value(v) for v in value] if isinstance(value, list | tuple) else value


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 launch`, `1,200 launches`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def moment(text: str) -> str:
    """`15 November 2026, 03:39 UTC+01:00`; anything that is no time stays as it is."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()


def time_between(start: str, end: str | None) -> str:
    """As exact as the two times are: most tell whole seconds."""
    try:
        seconds = (datetime.fromisoformat(end or "") - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return "–"
    if seconds < 0:
        return "–"
    if not seconds.is_integer():
        return format_duration(seconds)
    return "under 1 s" if seconds < 1 else f"{seconds:.0f} s" if seconds < 100 else format_duration(seconds)
