"""milabench's figures in our reports."""

from __future__ import annotations

import json
from typing import Any

import pytest
from suite_runs import failed, launch, on_devices, result, run

from benchwright.core.run import Result
from benchwright.report.registry import reporter_named
from benchwright.results.after_run import report_of
from benchwright.results.scores import Scoring


def text(*results: Result, format_: str = "screen", **scoring: Any) -> str:
    return reporter_named(format_).render(report_of(run(*results), scoring=Scoring(rule="milabench", **scoring)))


def test_milabenchs_figures_stand_as_in_their_report() -> None:
    facts = {"milabench": {"success": True, "device": None, "weight": 2, "enabled": True}}
    shown = text(result("b", launch(1.0, 10.0, 20.0, 30.0, 90.0, facts=facts)), price=42.0)
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["benchmark", "fail", "n", "ngpu", "perf", "sem%", "std%", "score", "weight"]
    assert lines[1] == ["b", "0", "1", "0", "20.00", "23.6%", "40.8%", "20.00", "2.00"]
    assert " Failure rate: 0.00% (PASS)\n Score: 21.00\n Price: 42.00\n Price / Score: 2.00\n" in shown


def test_json_and_html_have_them_too() -> None:
    told = (on_devices("a", (50.0, 100.0)), failed("b"))
    found = json.loads(text(*told, format_="json"))
    assert found["milabench"]["benchmarks"][0]["perf"] == pytest.approx(75.0)
    assert "as milabench computes it" in text(*told, format_="html")
