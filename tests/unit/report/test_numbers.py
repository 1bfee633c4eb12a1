"""Figures that belong together are written so that both can be read."""

from __future__ import annotations

import math

import msgspec
import pytest
from suite_runs import benchmark, launch, measured, result, run

from benchwright.report.base import Report
from benchwright.report.html.reporter import HtmlReporter
from benchwright.report.screen import ScreenReporter
from benchwright.report.text.numbers import format_ends, format_value, time_between
from benchwright.results.after_run import report_of


@pytest.mark.parametrize(
    ("low", "high", "unit", "shown"),
    [
        (0.9, 1.1, "s", ("900 ms", "1.1 s")),
        (0.0, 0.002, "s", ("0 s", "2 ms")),
        (1.1, 1.3, "s", ("1.1", "1.3")),
        (0.9, 1.1, "items/s", ("0.9", "1.1")),
        (1023.0, 2048.0, "B", ("1023 B", "2 KiB")),
        (math.nan, 1.1, "s", ("nan s", "1.1 s")),
        (1.0, 2.0, None, ("1", "2")),
    ],
)
def test_a_range_says_both_units_where_they_differ(
    low: float, high: float, unit: str | None, shown: tuple[str, str]
) -> None:
    assert format_ends(low, high, unit) == shown


def lasting(*seconds: float) -> Report:
    launches = [
        launch(1.0, position=n, more=(measured("latency", took, unit="s", source="log"),))
        for n, took in enumerate(seconds)
    ]
    return report_of(run(result("b", *launches, of=benchmark("b", folder=None))))


def test_a_range_of_launches_carries_both_units() -> None:
    report = lasting(0.9, 1.1)
    assert "900 ms to 1.1 s\n" in ScreenReporter().render(report)
    assert "900 ms to 1.1 s" in HtmlReporter().render(report)


def test_an_interval_carries_both_units_and_the_best_its_own() -> None:
    report = lasting(0.97, 0.98, 0.99, 0.99, 1.02, 1.03, 1.04)
    (summary,) = (s for s in report.summaries["b"] if s.metric == "latency")
    assert summary.interval is not None
    low, high = format_ends(summary.interval.low, summary.interval.high, "s")
    assert (low[-3:], high[-2:]) == (" ms", " s")
    page = HtmlReporter().render(report)
    assert f"{low} to {high}" in page
    assert "best 970 ms" in ScreenReporter().render(report)


@pytest.mark.parametrize(
    ("end", "shown"),
    [
        ("2026-11-15T10:00:00+00:00", "under 1 s"),
        ("2026-11-15T10:00:01+00:00", "1 s"),
        ("2026-11-15T10:01:15+00:00", "75 s"),
        ("2026-11-15T10:03:05+00:00", "3 min 05 s"),
        ("2026-11-15T10:00:00.250+00:00", "250 ms"),
        ("2026-11-15T09:59:00+00:00", "–"),
        ("then", "–"),
        (None, "–"),
    ],
)
def test_how_long_a_run_took_is_no_more_exact_than_its_times(end: str | None, shown: str) -> None:
    assert time_between("2026-11-15T10:00:00+00:00", end) == shown


def test_a_run_within_a_second_did_not_take_0_ms() -> None:
    made = lasting(0.1)
    when = made.run.started
    page = HtmlReporter().render(msgspec.structs.replace(made, run=msgspec.structs.replace(made.run, ended=when)))
    assert "under 1 s" in page
    assert ">0 ms<" not in page


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1.2344e12, "FLOP/s", "1.234 TFLOP/s"),
        (41.7e9, "B/s", "41.7 GB/s"),
        (999.96e6, "B/s", "1 GB/s"),
        (999.6e6, "B/s", "999.6 MB/s"),
        (12.0, "B/s", "12 B/s"),
        (2.1e9, "FLOP", "2.1 GFLOP"),
        (1.5 * 2**30, "B", "1.5 GiB"),
        (5820.2, "tokens/s", "5,820.2 tokens/s"),
    ],
)
def test_arithmetic_and_bandwidth_have_decimal_prefixes_and_items_have_none(
    value: float, unit: str, shown: str
) -> None:
    assert format_value(value, unit) == shown
    assert format_value(value, unit, bare=True) == (shown if unit != "tokens/s" else "5,820.2")
