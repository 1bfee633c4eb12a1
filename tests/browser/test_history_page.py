"""The history page and a notebook's cell in a real browser: on a phone, in the dark, in a narrow cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_reports import ordinary_report

from benchwright.core.metric import Direction
from benchwright.core.metric_history import BenchmarkHistory, HistoryPoint
from benchwright.report.html.history_page import history_html
from benchwright.report.html.notebook import run_cell

pytestmark = pytest.mark.xdist_group("browser")
READABLE_PX = 9


@pytest.fixture
def opened(opened_page: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    def show(text: str, *, width: int, **context: Any) -> Any:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        return opened_page(path, width, **context)

    return show


def history() -> str:
    points = tuple(
        HistoryPoint(run=f"run.{n}", uid=str(n), started=f"2026-11-{n + 1:02d}T10:00:00Z", value=1234.5 + n % 3)
        for n in range(20)
    )
    series = BenchmarkHistory(
        benchmark="decode.py", metric="rate", labels={}, unit="tokens/s", direction=Direction.HIGHER,
        machine="m", host="h", setting={}, points=points,
    )  # fmt: skip
    return history_html([series])


@pytest.mark.parametrize("width", [360, 500, 800, 1280])
def test_the_letters_of_a_drawing_can_be_read_at_every_width(opened: Callable[..., Any], width: int) -> None:
    page = opened(history(), width=width)
    texts = page.locator("svg.history:visible text")
    assert texts.count() >= 4
    boxes = [texts.nth(number).bounding_box() for number in range(texts.count())]
    first, last = boxes[-2:]
    assert first["x"] + first["width"] < last["x"]  # the dates at both ends
    for box in boxes:
        assert box["height"] >= READABLE_PX
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    assert page.locator("svg.history:visible").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_its_theme_can_be_chosen_and_it_prints_on_white(opened: Callable[..., Any]) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page = opened(history(), width=900, color_scheme="dark")
    assert page.evaluate(background) == "rgb(18, 21, 27)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(246, 247, 249)"
    page.click("#theme")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(background) == "rgb(246, 247, 249)"
    assert page.inner_text("#theme") == "Theme: dark"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(background) == "rgb(18, 21, 27)"


@pytest.mark.parametrize("width", [520, 760, 1000])
def test_the_table_of_a_cell_fits_the_cell(opened: Callable[..., Any], width: int) -> None:
    cell = f'<!DOCTYPE html><body style="margin:0"><div style="width:{width}px">{run_cell(ordinary_report())}</div>'
    page = opened(cell, width=1400)
    assert page.locator("table.results").evaluate("t => t.getBoundingClientRect().right") <= width
    assert page.locator("table.results .value").first.is_visible()
