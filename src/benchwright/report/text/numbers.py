"""Numbers as a reader wants them."""

from __future__ import annotations

import math

from benchwright.core.numbers.quantities import format_bytes


def format_value(value: float, unit: str | None, *, bare: bool = False) -> str:
    """A number with its unit; bytes and seconds below one in the unit that reads well; `bare`: without the unit where it is plain."""
    if unit == "B" and math.isfinite(value) and value >= 0:
        return format_bytes(value)
    if unit == "s" and 0 < abs(value) < 1:
        size = abs(value)
        scale, short = (1e3, "ms") if size >= 1e-3 else (1e6, "µs") if size >= 1e-6 else (1e9, "ns")
        return f"{format_number(value * scale)} {short}"
    return format_number(value) if bare or not unit else f"{format_number(value)} {unit}"


def format_ends(low: float, high: float, unit: str | None) -> tuple[str, str]:
    """Both ends of a range, without a unit where it is plain: `900 ms` and `1.1 s`, since each may be in another."""
    bare = unit != "s" or min(abs(low), abs(high)) >= 1
    return format_value(low, unit, bare=bare), format_value(high, unit, bare=bare)


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
