"""The share of the machine's peak, in every report that has room for it."""

from __future__ import annotations

import csv
import json
from typing import Any

from efficient_runs import peak, told, working
from suite_runs import launch, result, run

from benchwright.core.efficiency import CPU, FLOPS, Peak, Work
from benchwright.core.run import Result
from benchwright.report.details import details
from benchwright.report.registry import reporter_named
from benchwright.results.after_run import report_of

BOTH = (result("resnet", working(3.0, per_item=1e11)), peak([10.0], per_item=1e11))
EARLIER = {Work(FLOPS, "fp32", CPU): Peak(value=2e11, benchmark="matmul", run="old.1")}


def text(*results: Result, format_: str = "screen", **fields: Any) -> str:
    return reporter_named(format_).render(report_of(run(*results), **fields))


def test_the_table_has_a_column_where_a_share_is_known_and_there_is_room() -> None:
    lines = [line.split() for line in text(*BOTH).splitlines()]
    assert lines[0][-3:] == ["of", "peak", "score"]
    assert lines[1][-3:] == ["30", "%", "3"]
    assert lines[2][-3:] == ["100", "%", "10"]
    assert "of peak" not in text(*BOTH, width=30).splitlines()[0]
    assert "of peak" not in text(result("resnet", working(3.0))).splitlines()[0]
    assert "of peak" not in text(result("resnet", launch(3.0)))


def test_show_has_the_figures_in_words() -> None:
    shown = details(report_of(run(*BOTH)))
    words = " ".join(shown.split())
    assert "300 GFLOP/s in fp32 (100 GFLOP an item), 30 % of the 1 TFLOP/s that matmul sustained here" in words
    assert "300 GFLOP/s in fp32 (100 GFLOP an item)\n" in details(report_of(run(BOTH[0])))
    moved = result("copies", working(3.0, per_item=1e9, name="bytes_per_item.host_to_device"))
    assert "   3 GB/s host to device (1 GB an item)\n" in details(report_of(run(moved)))


def test_a_small_share_has_a_tenth() -> None:
    assert "0.3 %" in text(result("resnet", working(0.03, per_item=1e11)), BOTH[1])


def test_json_has_them_for_each_result_that_tells() -> None:
    first, second, third = json.loads(text(*BOTH, result("plain", launch(1.0)), format_="json"))["results"]
    assert first["efficiency"] == [
        {
            "quantity": "flops",
            "kind": "fp32",
            "place": "cpu",
            "per_item": 1e11,
            "achieved": 3e11,
            "unit": "FLOP/s",
            "peak": 1e12,
            "peak_benchmark": "matmul",
            "peak_run": None,
            "peak_cores": None,
            "share": 0.3,
            "why_no_share": None,
        }
    ]
    assert second["efficiency"][0]["share"] == 1.0
    assert "efficiency" not in third


def test_csv_has_rows_of_its_own() -> None:
    rows = [r for r in csv.DictReader(text(*BOTH, format_="csv").splitlines()) if r["benchmark"] == "resnet"]
    by_metric = {r["metric"]: r for r in rows}
    assert (by_metric["achieved"]["value"], by_metric["achieved"]["unit"]) == ("300000000000.0", "FLOP/s")
    assert float(by_metric["of_peak"]["value"]) == 0.3
    assert json.loads(by_metric["of_peak"]["labels"]) == {"kind": "fp32", "place": "cpu", "quantity": "flops"}


def test_markdown_and_html_have_it_in_their_tables() -> None:
    assert "| 3 items/s | 30 % | 3 |" in text(*BOTH, format_="markdown")
    page = text(*BOTH, format_="html")
    assert "Of peak" in page
    assert "300 GFLOP/s in fp32 (100 GFLOP an item), 30 % of the 1 TFLOP/s that matmul sustained here." in page


def test_another_runs_peak_is_named_and_doubted_where_it_was_passed() -> None:
    shown = details(report_of(run(BOTH[0]), peaks=EARLIER, width=200))
    assert "300 GFLOP/s in fp32 (100 GFLOP an item); no share of peak: it is 150 % of what matmul sustained" in shown
    doubted = " ".join(text(BOTH[0], peaks=EARLIER).split())
    assert (
        "⚠ no share of peak: it is 150 % of what matmul sustained in run old.1; either the machine can do more"
        in doubted
    )
    assert "⚠ no share" not in text(*BOTH, peaks=EARLIER)
    below = result("resnet", working(1.0, per_item=1e11))
    named = details(report_of(run(below), peaks=EARLIER, width=200))
    assert "50 % of the 200 GFLOP/s that matmul sustained here in run old.1" in named


def test_a_peak_that_had_no_cores_gives_no_share_anywhere_and_the_reason_everywhere() -> None:
    reason = "matmul got 34 % of the CPU time it wanted"
    both = (result("resnet", working(3.0, per_item=1e11)), peak([10.0], per_item=1e11, got=0.34))
    for format_ in ("screen", "markdown", "csv", "json", "html"):
        found = " ".join(text(*both, format_=format_).split())
        assert reason in found, format_
        assert "30 %" not in found, format_
    body = json.loads(text(*both, format_="json"))
    assert [r["efficiency"][0]["share"] for r in body["results"]] == [None, None]
    assert [s["of_peak"] for s in body["score"]["benchmarks"]] == [None, None]


def test_reports_say_that_the_peak_is_the_one_sustained_here() -> None:
    for format_ in ("screen", "markdown", "html"):
        assert "sustained on this machine, not of its data sheet" in " ".join(text(*BOTH, format_=format_).split())


def test_the_work_of_an_item_is_a_fact_and_no_metric_with_a_best() -> None:
    report = report_of(run(*BOTH))
    assert all("per_item" not in s.metric for number in (0, 1) for s in report.headline(number))
    assert "flops_per_item" not in text(*BOTH)
    told = [m for m in json.loads(text(*BOTH, format_="json"))["results"][0]["metrics"] if "per_item" in m["metric"]]
    assert [m["direction"] for m in told] == ["neither"]


def test_where_the_items_are_the_work_itself_it_is_not_said_twice() -> None:
    flops = result("matmul", working(3e11, per_item=1.0))
    assert "300 GFLOP/s in fp32\n" in details(report_of(run(flops)))


def test_without_a_peak_reports_say_how_to_measure_one() -> None:
    hint = "benchwright run system --select peak measures it, once"
    for format_ in ("screen", "markdown", "html"):
        assert hint in " ".join(text(BOTH[0], format_=format_).split())
        assert hint not in " ".join(text(*BOTH, format_=format_).split())


def test_a_share_of_the_memory_is_named_as_such_everywhere() -> None:
    decode = result("decode", working(3.0, per_item=1e10, more=(told(1e9, name="bytes_per_item"),)))
    both = (decode, peak([10.0], per_item=1e11), peak([4.0], "triad", per_item=1e9, name="bytes_per_item"))
    for format_ in ("screen", "markdown", "html"):
        found = " ".join(text(*both, format_=format_).split())
        assert "75 % (memory)" in found, format_
        assert "limits that benchmark more than its arithmetic does" in found, format_
    body = json.loads(text(*both, format_="json"))
    (first, *_) = body["score"]["benchmarks"]
    assert (first["of_peak"], first["limited_by"]) == (0.75, "memory")
    assert [r.get("limited_by") for r in body["results"]] == ["memory", None, None]
    shown = details(report_of(run(*both), width=200))
    assert "75 % of the 4 GB/s that triad sustained here; this limits it" in shown
    assert shown.count("limits it") == 1
