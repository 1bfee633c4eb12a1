"""The share of the machine's peak, in every report that has room for it."""

from __future__ import annotations

import csv
import json
from typing import Any

from efficient_runs import peak, working
from suite_runs import launch, result, run

from benchwright.domain.efficiency import CPU, FLOPS, Peak, Work
from benchwright.domain.run import Result
from benchwright.pipeline.outcome import report_of
from benchwright.reporters.details import details
from benchwright.reporters.registry import reporter_named

BOTH = (result("resnet", working(3.0, per_item=1e11)), peak([10.0], per_item=1e11))
EARLIER = {Work(FLOPS, "fp32", CPU): Peak(value=2e11, benchmark="matmul", run="old.1")}


def text(*results: Result, format_: str = "screen", **fields: Any) -> str:
    return reporter_named(format_).render(report_of(run(*results), **fields))


def test_the_table_has_a_column_where_a_share_is_known_and_there_is_room() -> None:
    lines = [line.split() for line in text(*BOTH).splitlines()]
    assert lines[0][-3:] == ["of", "peak", "score"]
    assert lines[1][-3:] == ["30", "%", "3"]
    assert lines[2][-3:] == ["100", "%", "10"]
    assert "of peak" not in text(*BOTH, width=40)
    assert "of peak" not in text(result("resnet", working(3.0)))
    assert "of peak" not in text(result("resnet", launch(3.0)))


def test_show_has_the_figures_in_words() -> None:
    shown = details(report_of(run(*BOTH)))
    assert "   300 GFLOP/s in fp32, 30 % of the 1 TFLOP/s that matmul reached\n" in shown
    assert "300 GFLOP/s in fp32\n" in details(report_of(run(BOTH[0])))
    moved = result("copies", working(3.0, per_item=1e9, name="bytes_per_item.host_to_device"))
    assert "   3 GB/s host to device\n" in details(report_of(run(moved)))


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
            "share": 0.3,
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
    assert "| 30 % | 1 | 3 |" in text(*BOTH, format_="markdown")
    page = text(*BOTH, format_="html")
    assert "Of peak" in page
    assert "300 GFLOP/s in fp32, 30 % of the 1 TFLOP/s that matmul reached." in page


def test_another_runs_peak_is_named_and_doubted_where_it_was_passed() -> None:
    shown = details(report_of(run(BOTH[0]), peaks=EARLIER, width=200))
    assert "150 % of the 200 GFLOP/s that matmul reached in run old.1" in shown
    assert "⚠ 300 GFLOP/s in fp32, 150 %" in text(BOTH[0], peaks=EARLIER)
    assert "⚠ 300" not in text(*BOTH, peaks=EARLIER)
