"""A run in a few words."""

from __future__ import annotations

import suite_runs
from example_reports import ordinary_report, report, result

from benchwright.core.status import Reason, Status
from benchwright.report.run_list import headline_words
from benchwright.results.after_run import headline_of


def test_one_benchmark_is_known_by_its_metric() -> None:
    first = ordinary_report().run.results[0]
    assert headline_words(report([first])).startswith("rate 1,0")


def test_several_are_named_and_what_failed_has_no_number() -> None:
    words = headline_words(ordinary_report())
    assert words.startswith("resnet50: 1,0")
    assert "bert-base: " in words
    assert "llama" not in words


def test_of_many_only_the_first_are_named() -> None:
    measured = [suite_runs.result(f"b{n}", suite_runs.launch(float(n + 1))) for n in range(5)]
    assert headline_words(report(measured)).endswith("b2: 3 items/s and 2 more")


def test_a_suite_has_its_score() -> None:
    results = [suite_runs.result("a", suite_runs.launch(4.0)), suite_runs.result("b", suite_runs.launch(9.0))]
    assert headline_of(suite_runs.run(*results)) == "score 6"


def test_nothing_measured_is_no_headline() -> None:
    assert headline_words(report([result("a", (), Status.FAILED, reason=Reason.CRASHED)])) == ""
