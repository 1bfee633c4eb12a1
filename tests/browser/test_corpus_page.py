"""The page of a corpus in a real browser: many models can be searched, sorted and filtered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from corpus_runs import corpus_run

from benchwright.core.aggregates import aggregate
from benchwright.kinds.models.corpus.document import CorpusReport
from benchwright.kinds.models.corpus.entries import corpus_of_reports
from benchwright.kinds.models.corpus.page import corpus_html
from benchwright.report.base import Report
from benchwright.results.after_run import summaries_of

pytestmark = pytest.mark.xdist_group("browser")
MODELS = 120
SIZE_LIMIT_BYTES = 200_000


@pytest.fixture(scope="module")
def page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page, opened, with what its console said in `troubles`."""
    run = corpus_run(MODELS, samples=5)
    report = Report(run=run, summaries=summaries_of(run), aggregate=aggregate)
    path: Path = tmp_path_factory.mktemp("corpus") / "corpus.html"
    path.write_text(corpus_html(CorpusReport(corpus=corpus_of_reports([report]), caches=("A",), results=())))
    assert path.stat().st_size < SIZE_LIMIT_BYTES
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.troubles = []
    opened.on("console", lambda message: opened.troubles.append(message.text))
    opened.on("pageerror", lambda error: opened.troubles.append(str(error)))
    opened.goto(path.as_uri())
    opened.wait_for_function("document.documentElement.dataset.ready")
    yield opened
    opened.close()


def column(page: Any, number: int) -> list[str]:
    return page.eval_on_selector_all(  # type: ignore[no-any-return]
        "#matrix tbody tr", f"rows => rows.map(r => r.cells[{number}].textContent)"
    )


def test_every_model_is_a_row_and_nothing_goes_wrong(page: Any) -> None:
    assert column(page, 0) == [f"net{number:04d}.py" for number in range(MODELS)]
    assert page.troubles == []
    assert page.locator("details.benchmark").count() == 0


def test_search_filter_and_sort(page: Any) -> None:
    page.fill("#filter-models", "net0042")
    assert column(page, 0) == ["net0042.py"]
    page.fill("#filter-models", "")
    page.select_option("select[data-label='task']", "audio")
    some = column(page, 0)
    assert 0 < len(some) < MODELS
    assert page.text_content("#shown-models") == f"{len(some)} of {MODELS} models"
    page.select_option("select[data-label='task']", "")
    page.select_option("#metric", "speedup")
    page.click("#matrix thead th:nth-child(4) button")
    shown = [float(text.strip("×? ")) for text in column(page, 3) if text.startswith("×") and "~" not in text]
    assert shown == sorted(shown, reverse=True)
    assert column(page, 3)[-1][0] != "×"  # what has no value stays last
    page.select_option("#metric", "latency")
    page.click("#matrix thead th:nth-child(1) button")


def test_the_plot_follows_the_filter_and_tells_the_model_under_the_pointer(page: Any) -> None:
    every = page.locator("#scatter circle").count()
    assert every > 3 * MODELS
    page.fill("#filter-models", "net0001")
    assert 0 < page.locator("#scatter circle").count() <= 4
    page.locator("#scatter circle").first.scroll_into_view_if_needed()
    page.locator("#scatter circle").first.hover(force=True)
    assert "net0001.py" in page.text_content("#tip")
    page.select_option("#across", "flops")
    assert "FLOP" in page.text_content("#scatter")
    page.fill("#filter-models", "")
    page.select_option("#across", "parameters")
    assert page.troubles == []
