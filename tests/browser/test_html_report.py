"""The HTML report in a real browser."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_reports import ODD_NAMES, large_report, odd_report, ordinary_report, report, result

from benchwright.core.run import Launch
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.html import HtmlReporter

pytestmark = pytest.mark.xdist_group("browser")
SIZE_LIMIT_BYTES = 3_000_000


class Opened:
    """A report in a page, with everything that went wrong or was asked of the network."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page = page
        self.troubles: list[str] = page.troubles
        self.requests: list[str] = page.requests
        self.address = path.as_uri()

    def names(self) -> list[str]:
        """The benchmarks of the visible rows, from top to bottom."""
        return self.page.eval_on_selector_all(  # type: ignore[no-any-return]
            "#results tbody tr", "rows => rows.filter(r => !r.hidden).map(r => r.cells[0].textContent)"
        )

    def wait_for_charts(self, number: int = 0) -> None:
        """Goes there, as a reader would: charts are made when they come into view."""
        self.page.locator(f"#b{number} .charts").evaluate("e => e.scrollIntoView()")
        self.page.wait_for_selector(f"#b{number} .charts[data-samples] canvas[data-samples]", timeout=150_000)


@pytest.fixture
def open_report(opened_page: Callable[..., Any], tmp_path: Path) -> Callable[..., Opened]:
    def opened(shown: Report, *, width: int = 1280, **context: Any) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(HtmlReporter().render(shown), encoding="utf-8")
        return Opened(opened_page(path, width, **context), path)

    return opened


def blocks_of(text: str) -> list[dict[str, Any]]:
    """The data blocks of a page, read as any other program would."""
    return [json.loads(m) for m in re.findall(r'<script type="application/json" id="d\d+">(.*?)</script>', text)]


def samples_in(block: dict[str, Any]) -> dict[str, list[float]]:
    raw = zlib.decompress(base64.b64decode(block["data"]), -zlib.MAX_WBITS)
    found, at = {}, 0
    for series in block["series"]:
        count = sum(part[1] + part[2] for part in series["parts"] if len(part) == 4)  # five: by the step time
        size, kind = (8, "d") if series["wide"] else (4, "f")
        planes = raw[at : at + count * size]
        flat = bytes(planes[plane * count + i] for i in range(count) for plane in range(size))
        found[series["name"]] = list(struct.unpack(f"<{count}{kind}", flat))
        at += count * size
    assert at == len(raw)
    return found


def test_it_opens_without_a_complaint_and_asks_nothing_of_the_network(open_report: Callable[..., Opened]) -> None:
    opened = open_report(ordinary_report())
    opened.wait_for_charts()
    opened.page.click("#open-all")
    opened.page.mouse.wheel(0, 5000)
    opened.page.wait_for_timeout(300)
    assert opened.troubles == []
    assert opened.requests == [opened.address]


def test_failures_come_first_with_reason_and_log(open_report: Callable[..., Opened]) -> None:
    first = open_report(ordinary_report()).page.locator(".finding").first.inner_text()
    assert "llama out of memory" in first
    assert "torch.OutOfMemoryError: CUDA out of memory <b>now</b>" in first
    assert "smaller batch" in first


def test_noisy_results_are_marked(open_report: Callable[..., Opened]) -> None:
    page = open_report(ordinary_report()).page
    assert page.locator("tr:has(.noisy) th").all_inner_texts() == ["bert-base"]
    assert "Noisy" in page.locator("#findings").inner_text()


def test_every_sample_is_in_the_file_in_seven_digits() -> None:
    shown = ordinary_report()
    blocks = blocks_of(HtmlReporter().render(shown))
    launches = shown.run.results[0].launches
    measured = [m for x in launches for m in x.measurements if m.metric == "step_time"]
    assert samples_in(blocks[0])["step time"] == pytest.approx(
        [v for m in measured for v in m.warmup_samples + m.samples], rel=1e-7
    )


def test_samples_too_large_or_too_small_for_32_bits_are_kept_exactly() -> None:
    from example_reports import measurement

    extreme = [1e300, 5e-300, float("inf"), -1e-40, 0.0]
    launch = Launch(job="x.D0", status=Status.OK, measurements=(measurement("size", extreme),))
    [block] = blocks_of(HtmlReporter().render(report([result("x", [launch])])))
    assert samples_in(block)["size"] == extreme


def test_every_sample_reaches_the_chart(open_report: Callable[..., Opened]) -> None:
    shown = ordinary_report()
    opened = open_report(shown)
    opened.wait_for_charts()
    launches = shown.run.results[0].launches
    rates = [m for x in launches for m in x.measurements if m.metric == "rate"]
    count = sum(len(m.samples) + len(m.warmup_samples) for m in rates)
    canvas = opened.page.locator("#b0 canvas").first
    assert canvas.get_attribute("data-samples") == canvas.get_attribute("data-drawn") == str(count)
    everything = sum(len(m.samples) + len(m.warmup_samples) for x in launches for m in x.measurements)
    assert opened.page.locator("#b0 .charts").get_attribute("data-samples") == str(everything)


def test_a_chart_is_really_drawn_and_changes_with_the_metric(open_report: Callable[..., Opened]) -> None:
    opened = open_report(ordinary_report())
    opened.wait_for_charts()
    picture = "document.querySelector('#b0 canvas').toDataURL()"
    rate = opened.page.evaluate(picture)
    opened.page.locator("#b0 .charts select").select_option(label="step time")
    assert opened.page.evaluate(picture) != rate
    assert len(rate) > 5000


def test_of_very_many_samples_some_are_drawn_and_the_page_says_so(open_report: Callable[..., Opened]) -> None:
    opened = open_report(large_report(1, 30_000, launches=2))
    opened.wait_for_charts()
    canvas = opened.page.locator("#b0 canvas").first
    assert canvas.get_attribute("data-samples") == "30000"
    assert int(canvas.get_attribute("data-drawn")) <= 5100
    note = opened.page.locator("#b0 .note").first.inner_text()
    assert "30,000 samples of 2 launches" in note
    assert "are drawn" in note


def test_the_pointer_shows_a_sample_with_its_unit(open_report: Callable[..., Opened]) -> None:
    opened = open_report(ordinary_report())
    opened.wait_for_charts()
    box = opened.page.locator("#b0 canvas").nth(1).bounding_box()
    for share in (0.5, 0.6, 0.7):
        opened.page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * 0.25)
    found = re.fullmatch(r"([\d,.]+) items/s\n(R\d), sample (\d+) of 132", opened.page.locator("#tip").inner_text())
    assert found
    launch = next(x for x in ordinary_report().run.results[0].launches if found[2] in x.job)
    rate = next(m for m in launch.measurements if m.metric == "rate")
    sample = (rate.warmup_samples + rate.samples)[int(found[3]) - 1]
    assert float(found[1].replace(",", "")) == pytest.approx(sample, rel=1e-3)


def test_the_table_sorts_by_name_and_by_number(open_report: Callable[..., Opened]) -> None:
    opened = open_report(ordinary_report())
    opened.page.click("#results th >> text=Benchmark")
    assert opened.names() == ["bert-base", "bert-base", "llama", "moe-8x", "resnet50", "resnet50"]
    opened.page.click("#results th >> text=Benchmark")
    assert opened.names()[0] == "resnet50"
    opened.page.click("#results th >> text=Value")
    assert opened.names()[:4] == ["resnet50", "bert-base", "bert-base", "resnet50"]
    assert {*opened.names()[4:]} == {"llama", "moe-8x"}, "what has no number stays last"
    opened.page.click("#results th >> text=Status")
    assert opened.names()[0] == "llama"


def test_the_table_filters_by_words_and_by_status(open_report: Callable[..., Opened]) -> None:
    opened = open_report(ordinary_report())
    opened.page.fill("#filter", "RESNET rate")
    assert opened.names() == ["resnet50"]
    assert opened.page.inner_text("#shown") == "1 of 6"
    opened.page.fill("#filter", "")
    opened.page.select_option("#status", "failed")
    assert opened.names() == ["llama"]


def test_the_theme_follows_the_system_and_can_be_chosen(open_report: Callable[..., Opened]) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page = open_report(ordinary_report(), color_scheme="dark").page
    assert page.evaluate(background) == "rgb(18, 21, 27)"
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: light"
    assert page.evaluate(background) == "rgb(246, 247, 249)"
    page.reload()
    assert page.evaluate(background) == "rgb(246, 247, 249)"
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: dark"
    assert page.evaluate(background) == "rgb(18, 21, 27)"


def test_charts_of_open_benchmarks_are_printed_without_having_been_seen(open_report: Callable[..., Opened]) -> None:
    page = open_report(ordinary_report(), color_scheme="dark").page
    page.evaluate("document.querySelectorAll('details.benchmark').forEach(d => d.open = true)")
    page.wait_for_selector("#b0 .charts[data-samples] canvas[data-samples]", timeout=150_000)  # nobody scrolled there
    corner = "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].reduce((a, b) => a + b, 0)"
    canvas = page.locator("#b0 canvas").first
    dark = canvas.evaluate(corner)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert canvas.evaluate(corner) != dark  # drawn again, for white paper
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator(".chart-tools select").first.is_visible()
    assert canvas.is_visible()
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert canvas.evaluate(corner) == dark


def test_a_link_opens_the_benchmark_it_points_to(open_report: Callable[..., Opened]) -> None:
    opened = open_report(large_report(30, 20))
    assert not opened.page.locator("#b20").evaluate("e => e.open")
    opened.page.click("#results a[href='#b20']")
    opened.wait_for_charts(20)
    assert opened.page.locator("#b20").evaluate("e => e.open")
    assert opened.page.locator(".charts[data-samples]").count() == 1, "charts are made only when looked at"


@pytest.mark.parametrize("width", [390, 1280])
def test_odd_names_are_shown_as_they_are_and_harm_nothing(open_report: Callable[..., Opened], width: int) -> None:
    opened = open_report(odd_report(), width=width)
    opened.page.click("#open-all")
    opened.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    opened.wait_for_charts()
    opened.page.evaluate("document.querySelector('#environment').scrollIntoView()")
    opened.page.wait_for_timeout(300)
    assert opened.page.evaluate("window.harmed") is None
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("script").count() == 1 + opened.page.locator("script[type='application/json']").count()
    shown = opened.names()
    for name in ODD_NAMES[:6]:
        assert name in shown
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.troubles == []
    assert opened.requests == [opened.address]


def test_a_script_that_got_in_all_the_same_would_not_run(open_report: Callable[..., Opened]) -> None:
    opened = open_report(ordinary_report())
    opened.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.harmed = 1'; document.body.append(s) }"
    )
    assert opened.page.evaluate("window.harmed") is None


def test_a_phone_shows_it_without_scrolling_sideways(open_report: Callable[..., Opened]) -> None:
    opened = open_report(ordinary_report(), width=390)
    opened.wait_for_charts()
    opened.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.page.locator("#results .value").first.is_visible()


@pytest.mark.parametrize("make", [ordinary_report, odd_report])
def test_no_window_is_too_narrow_for_it(open_report: Callable[..., Opened], make: Callable[[], Report]) -> None:
    page = open_report(make()).page
    for width in (320, 500, 700, 881, 900, 1000, 1100, 1181, 1500):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_the_numbers_are_there(open_report: Callable[..., Opened]) -> None:
    page = open_report(ordinary_report(), java_script_enabled=False).page
    assert re.search(r"1,0\d\d\.\d items/s", page.locator("#results .value").first.inner_text())
    assert "need JavaScript" in page.locator("#benchmarks").inner_text()
    assert not page.locator("#filter").is_visible()


def test_secrets_of_the_environment_are_not_in_the_file() -> None:
    text = HtmlReporter().render(ordinary_report())
    assert "never-shown" not in text
    assert "OMP_NUM_THREADS=4" in text


def test_an_empty_run_is_a_page_too(open_report: Callable[..., Opened]) -> None:
    opened = open_report(report([]))
    assert "no benchmarks" in opened.page.locator("#summary").inner_text()
    assert opened.troubles == []


def test_two_hundred_benchmarks_of_a_thousand_samples_are_small_and_usable_at_once(
    open_report: Callable[..., Opened],
) -> None:
    shown = large_report(200, 1000)
    text = HtmlReporter().render(shown)
    assert len(text.encode()) < SIZE_LIMIT_BYTES
    assert sum(len(samples_in(block)["latency"]) for block in blocks_of(text)) == 200_000
    opened = open_report(shown)
    opened.page.wait_for_selector("html[data-ready]")
    # What makes it quick: nothing is unpacked or drawn before a reader looks at it.
    assert opened.page.locator(".charts").count() == 200
    assert opened.page.locator(".charts[data-samples], .charts canvas").count() == 0
    opened.page.fill("#filter", "benchmark_123")
    assert opened.names() == ["suite/group-3/benchmark_123"]
    opened.page.click("#results a[href='#b123']")
    opened.wait_for_charts(123)
    assert opened.page.locator(".charts[data-samples]").count() < 10
    assert opened.troubles == []


def test_the_picture_comes_first_then_results_then_warnings(open_report: Callable[..., Opened]) -> None:
    page = open_report(ordinary_report()).page
    places = page.eval_on_selector_all("main section[id]", "sections => sections.map(s => s.id)")
    assert places == ["picture", "summary", "findings", "benchmarks", "environment"]
    names = page.locator(".picture .row .name").all_inner_texts()
    assert names == ["resnet50", "bert-base", "llama", "moe-8x"]
    assert page.locator(".picture .row.failed .figures").inner_text() == "failed: out of memory"
    assert page.locator(".picture .row svg .launch").count() == 12


def test_a_dot_lies_where_the_axis_says(open_report: Callable[..., Opened]) -> None:
    shown = ordinary_report()
    page = open_report(shown).page
    marks = page.eval_on_selector_all(
        ".picture .axis text",
        "marks => marks.map(m => [parseFloat(m.textContent.replace(',', '')), parseFloat(m.getAttribute('x'))])",
    )
    (first, x1), *_, (last, x2) = marks
    drawn = page.eval_on_selector_all(
        ".picture .row:first-child .launch", "dots => dots.map(d => parseFloat(d.getAttribute('cx')))"
    )
    values = shown.headline(0)[0].values
    assert [first + (x - x1) / (x2 - x1) * (last - first) for x in drawn] == pytest.approx(list(values), rel=1e-3)


@pytest.mark.parametrize("width", [360, 720, 1280])
def test_nothing_is_cut_off_or_needs_scrolling_sideways(open_report: Callable[..., Opened], width: int) -> None:
    page = open_report(odd_report(), width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cut = """all => all.filter(e => e.clientWidth && (e.scrollWidth > e.clientWidth + 1)).map(e => e.outerHTML)"""
    assert page.eval_on_selector_all("main a, .picture .figures, summary .name", cut) == []
    assert "ellipsis" not in page.eval_on_selector_all(
        "main a, summary .name", "all => all.map(e => getComputedStyle(e).textOverflow)"
    )


def test_no_field_is_shown_by_its_name_in_the_source(open_report: Callable[..., Opened]) -> None:
    page = open_report(ordinary_report()).page
    page.eval_on_selector_all("details", "all => all.forEach(e => e.open = true)")
    text = page.locator("main").inner_text()
    assert not re.findall(r"\b(?:per device|True|False|None|max seconds|memory\.\w+|cpu\.\w+|gpu\.\w+)\b", text)
    assert "PSS counts memory that several processes share once; RSS counts it once for each" in text
