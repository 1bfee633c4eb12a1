"""Durations as they are shown."""

from __future__ import annotations

import math

import pytest

from benchwright.domain.quantities import format_duration


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
