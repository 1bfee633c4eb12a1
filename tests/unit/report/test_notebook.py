"""Runs and comparisons as the output of a notebook's cell."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from builders import run
from comparable_runs import benchmark, result
from example_reports import odd_report, ordinary_report

from benchwright.analysis.comparison.compare import compare
from benchwright.report.base import Report
from benchwright.report.html.notebook import comparison_cell, run_cell


class Elements(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize("report", [ordinary_report(), odd_report()], ids=["ordinary", "odd"])
def test_a_cell_is_one_element_that_loads_runs_and_links_nothing(report: Report) -> None:
    found = Elements(run_cell(report)).found
    tags = {tag for tag, _ in found}
    assert found[0] == ("div", {"class": "benchwright"})
    assert not tags & {"html", "head", "body", "script", "link", "img", "iframe", "a"}
    assert "table" in tags
    assert not [attrs for _, attrs in found if any(name.startswith("on") for name in attrs)]


def test_the_style_holds_for_the_cell_alone_and_follows_the_theme_of_the_notebook() -> None:
    style = re.findall(r"<style>(.*?)</style>", run_cell(ordinary_report()), re.DOTALL)[0]
    assert style.startswith(".benchwright {")
    assert style.count("{") == style.count("}")
    assert ":root" not in style
    assert not re.search(r"^body", style, re.MULTILINE)
    assert '[data-jp-theme-light="false"] &' in style


def test_a_comparison_shows_its_picture_and_its_verdict() -> None:
    sides = [run(result(benchmark(), [t] * 8), id=f"side.{n}") for n, t in enumerate((1.0, 2.0))]
    cell = comparison_cell([compare(*sides, margin=0.02, metrics=None)])
    assert all(word in cell for word in ("<table", "<svg", "side.0 → side.1", "regressed"))
