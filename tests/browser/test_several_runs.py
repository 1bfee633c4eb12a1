"""One HTML file of several runs in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from example_reports import odd_report, ordinary_report

from benchwright.report.base import Report
from benchwright.report.html import HtmlReporter
from benchwright.report.multi_run import render_several

pytestmark = pytest.mark.xdist_group("browser")


def named(report: Report, run_id: str) -> Report:
    return msgspec.structs.replace(report, run=msgspec.structs.replace(report.run, id=run_id))


REPORTS = [named(ordinary_report(), "first.1"), named(ordinary_report(), "second.2"), odd_report()]


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Any]:
    path = tmp_path / "report.html"
    path.write_text(render_several(HtmlReporter(), REPORTS), encoding="utf-8")
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.troubles = []
    opened.on("console", lambda message: opened.troubles.append(message.text))
    opened.on("pageerror", lambda error: opened.troubles.append(str(error)))
    opened.goto(path.as_uri())
    yield opened
    opened.close()


def test_every_place_is_there_once_and_every_link_leads_to_one() -> None:
    text = render_several(HtmlReporter(), REPORTS)
    places = re.findall(r' id="([^"]*)"', text)
    assert len(places) == len(set(places))
    assert set(re.findall(r' href="#([^"]*)"', text)) <= set(places)


def test_each_run_is_in_the_contents_and_works_by_itself(page: Any) -> None:
    assert page.locator("#contents tbody th").all_inner_texts()[:2] == ["first.1", "second.2"]
    page.click("#contents a[href='#run-2']")
    assert page.evaluate("location.hash") == "#run-2"
    page.fill("#filter-run-2", "bert")
    shown = "rows => rows.filter(r => !r.hidden).map(r => r.cells[0].textContent)"
    assert set(page.eval_on_selector_all("#results-run-2 tbody tr", shown)) == {"bert-base"}
    assert len(set(page.eval_on_selector_all("#results-run-1 tbody tr", shown))) == 4
    page.click("#close-all-run-2")
    assert page.locator("#benchmarks-run-2 details.benchmark[open]").count() == 0
    assert page.locator("#benchmarks-run-1 details.benchmark[open]").count() > 0
    page.click("#results-run-2 a[href='#b1-run-2']")
    page.wait_for_selector("#b1-run-2[open] .charts[data-samples] canvas[data-samples]", timeout=150_000)
    assert page.troubles == []
    assert page.evaluate("window.harmed") is None
