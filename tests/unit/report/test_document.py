"""One definition of each table: every format shows the same columns, each value and its doubt."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape

import model_runs
import pytest
from suite_runs import launch as suite_launch
from suite_runs import measured, on_devices, result, run

from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.summary import Interval
from benchwright.report.base import Report
from benchwright.report.document import Cell, Column, Field, ReportTable, table_of, word
from benchwright.report.registry import reporter_named
from benchwright.report.tables.comparison import comparison_table
from benchwright.report.tables.html import html_table
from benchwright.report.tables.scores import OURS
from benchwright.report.text.layout import table_lines
from benchwright.report.text.markdown import markdown_table
from benchwright.results.after_run import report_of
from benchwright.results.compare import render
from benchwright.results.scores import Scoring

FORMATS = ("screen", "markdown", "html", "csv", "json")
BUSY = Note(text="ran while the machine was busy", evidence="got 36 % of the CPU time it wanted", kind="busy")


def words(text: str) -> str:
    """Without markup, and with every run of spaces as one."""
    plain = re.sub(r"<[^>]+>", " ", text)
    return " ".join(unescape(plain).replace("\\u00b1", "±").replace("`", "").split())


def doubtful() -> Report:
    """A suite whose one benchmark was measured on a busy machine, with energy."""
    watts = measured("gpu.power", 300.0, unit="W", source="sampler", labels={"device": "0"})
    launches = [suite_launch(100.0 + n, position=n, devices=(0,), notes=(BUSY,), more=(watts,)) for n in range(6)]
    return report_of(run(result("resnet", *launches)), width=200, scoring=Scoring(rule="ours"))


@pytest.mark.parametrize("format_", FORMATS)
def test_a_value_and_its_doubt_are_in_every_format(format_: str) -> None:
    text = words(reporter_named(format_).render(doubtful()))
    assert "102.5" in text
    assert "an while the machine was busy" in text  # a sentence of its own begins with a capital
    assert "got 36 % of the CPU time it wanted" in text


@pytest.mark.parametrize("format_", ["screen", "markdown", "html"])
def test_the_table_of_scores_has_the_same_columns_in_every_format(format_: str) -> None:
    text = words(reporter_named(format_).render(doubtful())).lower()
    shown = [f.column.title.lower() for f in OURS if f.column.title not in ("", "overlap", "peak memory", "of peak")]
    assert " ".join(shown) in text.replace("| ", "")


def test_json_has_what_the_table_of_scores_has() -> None:
    (score,) = json.loads(reporter_named("json").render(doubtful()))["score"]["benchmarks"]
    assert score["weight"] == 1
    assert score["joules_per_item"] == pytest.approx(300 / 102.5, rel=0.02)
    assert score["median"] == pytest.approx(102.5)


def compared() -> Comparison:
    effect = Effect(
        benchmark="b",
        metric="speed",
        unit="items/s",
        direction=Direction.HIGHER,
        labels={},
        control=100.0,
        treatment=90.0,
        ratio=0.9,
        interval=Interval(0.85, 0.95),
        p_value=0.001,
        q_value=0.002,
        verdict=Verdict.REGRESSED,
        launches=(6, 8),
        paired=False,
        doubts=(Note(text="the treatment drifted by +4.0 % from its first launches to its last"),),
    )
    return Comparison(control="a.1", treatment="b.1", margin=0.02, effects=(effect,))


@pytest.mark.parametrize("format_", FORMATS)
def test_an_effect_and_its_doubt_are_in_every_format(format_: str) -> None:
    text = words(render([compared()], [run(), run()], format_, 100))
    assert "regressed" in text
    assert "the treatment drifted by +4.0 %" in text
    assert "90" in text
    if format_ in ("screen", "markdown", "html"):
        assert "-10.0 % [-15.0, -5.0]" in text.replace("\\", "")
        assert "6 + 8" in text


def test_a_row_that_lacks_figures_says_why_for_people_and_keeps_its_values_for_machines() -> None:
    fields: list[Field[str]] = [
        Field(Column("name", "name", quoted=True), word),
        Field(Column("size", "size", right=True), lambda name: Cell("", len(name))),
        Field(Column(key="upper"), lambda name: Cell(value=name.upper())),
    ]
    table = table_of(fields, ["a", "bc"], rest=lambda name: (1, "it failed") if name == "bc" else None)
    assert table_lines(table, 40) == [" name  size", " a        –", " bc    it failed"]
    assert markdown_table(table).splitlines()[2:] == ["| `a` | – |", "| `bc` | `it failed` |"]
    assert table.records()[1] == {"name": "bc", "size": 2, "upper": "BC"}


def test_a_column_of_nothing_but_dashes_is_left_out_for_people() -> None:
    fields: list[Field[str]] = [
        Field(Column("name"), word),
        Field(Column("none", "none"), lambda name: Cell()),
        Field(Column("some"), lambda name: Cell("x" if name == "a" else "")),
    ]
    table = table_of(fields, ["a", "b"])
    assert [c.title for c in table.shown().columns] == ["name", "some"]
    assert table.shown().rows[1].cells[1].text == "–"
    assert table.records()[0] == {"none": None}


def test_the_reason_why_there_are_no_figures_keeps_its_column() -> None:
    fields: list[Field[str]] = [Field(Column("name"), word), Field(Column("size"), lambda name: Cell())]
    table = table_of(fields, ["a"], rest=lambda name: (1, "it failed"))
    assert markdown_table(table).splitlines()[2] == "| a | `it failed` |"
    assert "it failed" in table_lines(table, 80)[1]


def constant(names: str) -> ReportTable:
    fields: list[Field[str]] = [
        Field(Column("name"), word),
        Field(Column("launches", "launches", setting=True), lambda name: word("6")),
        Field(Column("value"), lambda name: word("1")),
    ]
    return table_of(fields, names)


def test_a_setting_that_is_the_same_in_every_row_is_said_once_below_the_table() -> None:
    table = constant("ab")
    assert table_lines(table, 80) == [" name  value", " a     1", " b     1", " In every row: launches 6."]
    assert markdown_table(table).splitlines()[2:] == ["| a | 1 |", "| b | 1 |", "", "In every row: launches 6."]
    assert "In every row: launches 6." in html_table(table)
    assert table.records() == [{"launches": "6"}] * 2


def test_one_row_has_nothing_in_common_with_others() -> None:
    assert table_lines(constant("a"), 80) == [" name  launches  value", " a     6         1"]


def test_equal_results_are_no_setting() -> None:
    assert "value" in table_lines(constant("ab"), 80)[0]


def test_the_csv_of_a_comparison_has_the_documented_columns() -> None:
    table: ReportTable = comparison_table([compared()])
    assert list(table.records()[0])[:8] == [
        *("control", "treatment", "benchmark", "metric", "labels", "unit", "direction", "verdict")
    ]


@pytest.mark.parametrize("format_", FORMATS)
def test_the_doubt_of_a_speed_up_is_in_every_format(format_: str) -> None:
    eager = model_runs.result(model_runs.model(), model_runs.launch(0.09, notes=(BUSY,)))
    other = model_runs.result(model_runs.model("onnxruntime"), model_runs.launch(0.01))
    shown = model_runs.report([eager, other], width=160)
    text = words(reporter_named(format_).render(shown))
    assert "measured under different conditions" in text


def test_devices_are_compared_in_the_same_words() -> None:
    shown = report_of(run(on_devices("a", (50.0, 100.0))), scoring=Scoring(per_device=True))
    for format_ in ("screen", "markdown", "html"):
        assert "50.0 %" in words(reporter_named(format_).render(shown)), format_
    rows = list(csv.DictReader(io.StringIO(reporter_named("csv").render(shown))))
    assert {row["metric"] for row in rows} >= {"rate", "score"}
