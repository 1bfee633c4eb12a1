"""Percentiles of single samples in words, so that nobody takes them for the precision of a median over launches."""

from __future__ import annotations

from benchwright.core.results.summary import Percentile
from benchwright.report.screen import format_value

ABOUT = (
    "of the single samples of all launches together. They describe these samples; "
    "how well the median over launches is known is what its interval says"
)


def percentile_name(percentile: Percentile) -> str:
    """`p99`."""
    return f"p{percentile.percent:g}"


def bound_words(percentile: Percentile, unit: str | None) -> str:
    """`at most 12.9 ms`, or why there is no such bound."""
    if percentile.bound is not None:
        side = "at most" if percentile.percent >= 50 else "at least"
        return f"{side} {format_value(percentile.bound, unit)}"
    if percentile.independent < percentile.samples:
        have = f"worth {percentile.independent:,} independent samples"
    else:
        have = f"{percentile.samples:,} samples"
    needed = "no number would do" if percentile.needed is None else f"{percentile.needed:,} needed"
    return f"not bounded: {have}, {needed}"
