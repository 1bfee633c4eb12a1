"""The page of a comparison in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import builders
import pytest
from comparable_runs import benchmark, result

from benchwright.core.run import Run
from benchwright.results.compare import compare_runs, render

pytestmark = pytest.mark.xdist_group("browser")
BEFORE = [1.00, 1.01, 0.99, 1.02, 1.00, 0.98, 1.01, 1.00]


def runs() -> list[Run]:
    names = {"sort <b>": 1.3, "search": 1.0}
    before = builders.run(*(result(benchmark(name), BEFORE) for name in names), id="old.1")
    after = builders.run(
        *(result(benchmark(name), [v * by for v in BEFORE]) for name, by in names.items()),
        id="new.1",
        machine=builders.machine(hostname="other-host"),
    )
    return [before, after]


@pytest.fixture(scope="module", params=[360, 1280])
def page(request: pytest.FixtureRequest, browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    found = runs()
    comparisons = compare_runs(found, between=None, margin=0.02, metrics=(), all_metrics=False, anyway=True)
    path: Path = tmp_path_factory.mktemp("page") / "comparison.html"
    path.write_text(render(comparisons, found, "html", 80), encoding="utf-8")
    opened = browser.new_page(viewport={"width": request.param, "height": 900})
    opened.troubles = []
    opened.on("console", lambda message: opened.troubles.append(message.text))
    opened.on("pageerror", lambda error: opened.troubles.append(str(error)))
    opened.on("request", lambda asked: opened.troubles.append(asked.url) if asked.url != path.as_uri() else None)
    opened.goto(path.as_uri())
    yield opened
    opened.close()


def test_regressions_come_first_on_an_axis_with_their_interval(page: Any) -> None:
    assert page.locator(".picture .row .name").all_inner_texts() == ["sort <b> time", "search time"]
    assert page.locator(".picture .row.regressed .whisker").count() == 1
    assert page.locator(".picture .row .margin").count() == 2
    assert "+" in page.locator(".picture .axis").inner_text()


def test_remarks_stand_beside_their_row(page: Any) -> None:
    rows = page.locator("#table-1 tbody tr").all_inner_texts()
    assert [("sort <b>" in row, "search" in row) for row in rows] == [(True, False), (False, True)]
    heads = page.locator("#table-1 thead th").all_text_contents()
    assert heads[-1] == "Remarks" or "Remarks" not in heads  # no column of dashes


def test_every_sample_of_both_sides_is_drawn(page: Any) -> None:
    page.locator("#b0-1 .charts").evaluate("e => e.scrollIntoView()")
    page.wait_for_selector("#b0-1 canvas[data-samples]", timeout=150_000)
    canvas = page.locator("#b0-1 canvas").first
    assert canvas.get_attribute("data-samples") == canvas.get_attribute("data-drawn") == str(2 * len(BEFORE))


COUNT_HUES = """canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const counts = [0, 0, 0];
  for (let i = 0; i < data.length; i += 4) {
    const [red, green, blue, alpha] = data.slice(i, i + 4);
    if (alpha < 100 || Math.max(red, blue) - green < 60) continue;
    counts[red < 80 ? 0 : red < blue ? 1 : 2]++;
  }
  return counts;
}"""


def test_a_legend_tells_control_from_treatment(page: Any) -> None:
    page.locator("#b0-1 .charts").evaluate("e => e.scrollIntoView()")
    page.wait_for_selector("#b0-1 .legend", timeout=150_000)
    assert page.locator("#b0-1 .legend .key").all_inner_texts() == ["control", "treatment", "warm-up"]
    page.wait_for_selector("#b0-1 canvas[data-samples]", timeout=150_000)
    blue, purple, magenta = page.locator("#b0-1 canvas").first.evaluate(COUNT_HUES)
    assert min(blue, magenta) > 20
    assert purple < 5  # as launches between the first and the last of a run


def test_both_machines_are_named(page: Any) -> None:
    text = page.locator("#machines-1").inner_text()
    assert "other-host" in text
    assert builders.MACHINE.hostname in text


def test_it_fits_the_screen_without_a_complaint_or_the_network(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]
    assert page.troubles == []
