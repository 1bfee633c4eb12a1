"""The server's pages in a real browser: with and without scripts, wide and on a phone, light and dark; a form that writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from served_stores import ServedStores, store_behind
from shared_runs import REGRESSED, shared_runs

from benchwright.server.change_book import ChangeBook
from benchwright.server.pages.views import VIEWS
from benchwright.store.base import RunFilter, StoreEntry, SummaryFilter
from benchwright.store.sql_store import SqlStore

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, SqlStore]]:
    """Address, token and store."""
    folder = tmp_path_factory.mktemp("central")
    with ServedStores(folder) as stores:
        url = stores.serve(folder / "store.db")
        import urllib.request

        urllib.request.urlopen(f"{url}/healthz").read()
        store = store_behind(url)
        store.ingest_all([StoreEntry(run=run, digest="1") for run in shared_runs()])
        ChangeBook(folder).examine_all(store)
        yield url, stores.token, store


def every_page(store: SqlStore) -> list[str]:
    series = next(s for s in store.series(SummaryFilter(benchmark=REGRESSED, metric="rate")) if s.host == "alpha")
    run = store.runs(RunFilter(), limit=1)[0]
    compared = "/compare?control=nightly.0010.alpha&treatment=nightly.0039.alpha"
    return [*VIEWS, f"/runs/{run.uid}", f"/history/{series.id}", "/changes/1", compared]


@pytest.mark.parametrize(
    ("width", "options"),
    [(1280, {}), (390, {"color_scheme": "dark"}), (390, {"java_script_enabled": False})],
    ids=["light", "dark-phone", "no-script"],
)
def test_every_page_opens_and_fits(
    browser: Any, server: tuple[str, str, SqlStore], width: int, options: dict[str, Any]
) -> None:
    url, token, store = server
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    try:
        page = context.new_page()
        wrong: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{url}/sign-in?token={token}")
        assert page.url == f"{url}/"  # the token has left the address
        for path in every_page(store):
            asked.clear()
            page.goto(url + path)
            assert page.locator("h1").is_visible()
            assert page.locator(".site a").first.is_visible()
            assert len(asked) == 1, asked  # nothing is fetched besides the page
            if options.get("java_script_enabled", True):
                assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        assert wrong == []
    finally:
        context.close()


def test_filters_and_a_change_work_without_scripts(browser: Any, server: tuple[str, str, SqlStore]) -> None:
    url, token, _ = server
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(f"{url}/sign-in")
        page.fill("input[name=token]", token)
        page.click("main button")
        page.goto(f"{url}/runs")
        page.select_option("select[name=machine]", "beta")
        page.select_option("select[name=status]", "failed")
        page.click(".filters button")
        assert "5 runs" in page.inner_text("main")
        assert "machine=beta" in page.url
        page.goto(f"{url}/changes")
        page.click(f"text={REGRESSED}")
        page.select_option("select[name=state]", "explained")
        page.fill("input[name=owner]", "Ada")
        page.click(".write button")
        assert page.input_value("input[name=owner]") == "Ada"
        page.goto(f"{url}/changes?state=explained")
        assert "Ada" in page.inner_text("main")
    finally:
        context.close()
