"""Cells of CSV files: no text is a formula, every number is a number, and everything can be read back."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.report.text.csv_cells import escaped, write_row

SIGNS = "=+-@\t\r\n＝＋－＠"


def read_back(text: str) -> str:
    """As the documentation tells a reader to."""
    return text[1:] if text[:1] == "'" and text.lstrip("'")[:1] in tuple(SIGNS) else text


def written(*cells: object) -> list[str]:
    file = io.StringIO(newline="")
    write_row(file, cells)
    [row] = csv.reader(io.StringIO(file.getvalue(), newline=""))
    return row


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+x",
        "-x",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "＝1",
        "=cmd|' /C calc'!A0",
        "-1+cmd|'x'!A",
        "--gpus",
        "+1x",
    ],
)
def test_a_text_that_is_a_formula_is_escaped(text: str) -> None:
    assert written(text) == [f"'{text}"]


@pytest.mark.parametrize(
    "text", ["-1", "+2.5", "-1e-4", "-.5", "+inf", "-NaN", "", "resnet50", "a=b", "{'x'}", "'x", "1-2"]
)
def test_numbers_and_ordinary_texts_are_left_alone(text: str) -> None:
    assert written(text) == [text]


@given(
    st.lists(st.text(alphabet=st.one_of(st.sampled_from(SIGNS + "'\",1e."), st.characters(codec="utf-8"))), min_size=1)
)
def test_every_text_reads_back_and_none_begins_a_formula(texts: list[str]) -> None:
    if texts == [""]:
        return  # a row of one empty cell is an empty line to every reader
    cells = written(*texts)
    assert [read_back(cell) for cell in cells] == texts
    for cell in cells:
        assert cell[:1] not in tuple(SIGNS) or math.isclose(float(cell), float(cell)) or math.isnan(float(cell))


@given(st.floats(allow_nan=False))
def test_every_number_stays_one(value: float) -> None:
    assert [float(cell) for cell in written(value, str(value), f"{value:+}")] == [value] * 3
    assert escaped(value) is value
