"""Percentiles of samples, wherever they are shown."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

import pytest
from example_reports import loop_launch, report, result
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.summary import Percentile
from benchwright.report.base import Report
from benchwright.report.csv import CsvReporter
from benchwright.report.details import details
from benchwright.report.html.reporter import HtmlReporter
from benchwright.report.run_json import JsonReporter
from benchwright.report.text.metrics import PERCENTILES, bound_words
from benchwright.results.after_run import summaries_of


@dataclass
class Made:
    report: Report
    p90: Percentile
    p99: Percentile


@pytest.fixture(scope="module")
def made() -> Made:
    """300 steps: enough to bound p90, not p99."""
    launches = [loop_launch("net", n, steps=50, warmup=5, seed=3) for n in range(6)]
    shown = report([result("net", launches)])
    (summary,) = (s for s in shown.summaries["net"] if s.metric == "step_time")
    p90, _, p99 = summary.percentiles
    assert p90.bound is not None
    assert p99.bound is None
    return Made(shown, p90, p99)


def test_run_json_has_the_number_of_samples_beside_each_bound_or_its_absence(made: Made) -> None:
    (found,) = json.loads(JsonReporter().render(made.report))["results"]
    by_metric = {m["metric"]: m["percentiles"] for m in found["metrics"]}
    p90, _, p99 = by_metric["step_time"]
    assert (p90["percent"], p90["samples"], p90["confidence"]) == (90, 300, 0.99)
    assert (p90["value"], p90["bound"]) == (made.p90.value, made.p90.bound)
    assert (p99["bound"], p99["needed"]) == (None, 662)
    assert by_metric["rate"] == by_metric["loss"] == by_metric["memory.peak_rss"] == []


def test_the_table_has_a_column_for_each_and_none_is_made_up(made: Made) -> None:
    rows = list(csv.DictReader(io.StringIO(CsvReporter().render(made.report))))
    (row,) = (r for r in rows if r["metric"] == "step_time")
    assert (float(row["p90"]), float(row["p90_bound"])) == (made.p90.value, made.p90.bound)
    assert (float(row["p99"]), row["p99_bound"], row["p10"], row["samples"]) == (made.p99.value, "", "", "300")


def test_the_details_say_what_the_percentiles_are_of(made: Made) -> None:
    text = details(made.report)
    words = " ".join(text.split())
    assert PERCENTILES in words
    assert "step time, 300 samples: p90 " in words
    assert "at most 3" in text
    assert "samples for a bound (" in words
    assert " and 662)" in words
    assert max(map(len, text.splitlines())) <= 80


def test_the_page_has_them_in_the_benchmarks_own_section(made: Made) -> None:
    page = HtmlReporter().render(made.report)
    assert "Percentiles of samples (1)" in page
    assert PERCENTILES in page
    assert page.count(" and 662)") == 1


def test_the_page_says_that_few_launches_can_hide_drift(made: Made) -> None:
    told = Report(run=made.report.run, summaries=summaries_of(made.report.run), aggregate=made.report.aggregate)
    assert "With so few launches, slow drift can go unnoticed" in HtmlReporter().render(told)


@given(
    st.builds(
        Percentile,
        percent=st.sampled_from([1.0, 10.0, 90.0, 99.0, 100.0]),
        value=st.floats(-1e9, 1e9),
        bound=st.none() | st.floats(-1e9, 1e9),
        confidence=st.just(0.99),
        samples=st.integers(10, 10**7),
        independent=st.integers(1, 10),
        needed=st.none() | st.integers(1, 1000),
    ),
    st.sampled_from([None, "s", "B", "items/s"]),
)
def test_any_percentile_has_a_bound_or_says_why_not(percentile: Percentile, unit: str | None) -> None:
    words = bound_words(percentile, unit)
    if percentile.bound is None:
        assert words == "has no bound" or (
            words.startswith("too few ") and words.endswith(f" of {percentile.needed:,})")
        )
    else:
        assert words.startswith("at most " if percentile.percent >= 50 else "at least ")
