"""One Chromium for all tests of pages: to start it takes longer than to look at one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
HERE = Path(__file__).parent
_running = ExitStack()
_browsers: list[Any] = []


@pytest.fixture(scope="module")
def browser() -> Any:
    if not _browsers:
        playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
        if CHROMIUM is None:
            pytest.skip("there is no chromium: apt-get install chromium")
        driver = _running.enter_context(playwright.sync_playwright())
        _browsers.append(driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=ARGUMENTS))
        _running.callback(_close)
    return _browsers[0]


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[Any]:
    """A page that goes from one file to the next: every new one is a process, which takes longer to start than to look at it."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def opened_page(browser: Any, tab: Any) -> Iterator[Callable[..., Any]]:
    """`opened_page(path, width)`: the page with that file, and in `page.troubles` and `page.requests` what it said and asked.

    Options are those of a browser's context, which is then a new one.
    """
    contexts = []
    heard = []

    def show(path: Path, width: int, **context: Any) -> Any:
        page = tab
        if context:
            contexts.append(browser.new_context(**context))
            page = contexts[-1].new_page()
        page.set_viewport_size({"width": width, "height": 900})
        page.troubles, page.requests = troubles, requests = [], []
        for event, hear in (
            ("console", lambda message: troubles.append(message.text)),
            ("pageerror", lambda error: troubles.append(str(error))),
            ("request", lambda request: requests.append(request.url)),
        ):
            page.on(event, hear)
            heard.append((page, event, hear))
        page.goto(path.as_uri())
        return page

    yield show
    for page, event, hear in heard:
        page.remove_listener(event, hear)
    for each in contexts:
        each.close()


def _close() -> None:
    _browsers.pop().close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """It ends with the last of these tests: its event loop would be in the way of those of others."""
    try:
        return (yield)
    finally:
        if nextitem is None or HERE not in nextitem.path.parents:
            _running.close()
