"""Durations as they are shown."""

from __future__ import annotations

import math

import pytest

from benchwright.core.quantities import format_duration, format_prefixed


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.042, "42 ms"),
        (2.42, "2.42 s"),
        (12.4, "12.4 s"),
        (185.0, "3 min 05 s"),
        (7440.0, "2 h 04 min"),
        (math.nan, "nan s"),
        (math.inf, "inf s"),
    ],
)
def test_a_duration_is_shown_in_the_unit_that_reads_well(seconds: float, shown: str) -> None:
    assert format_duration(seconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 B/s"),
        (999.4, "999 B/s"),
        (999.6, "1 kB/s"),
        (4.37e12, "4.37 TB/s"),
        (-1.5e9, "-1.5 GB/s"),
        (1e21, "1e+03 EB/s"),
        (math.inf, "inf B/s"),
    ],
)
def test_what_is_done_in_a_second_has_a_decimal_prefix(value: float, shown: str) -> None:
    assert format_prefixed(value, "B/s") == shown
