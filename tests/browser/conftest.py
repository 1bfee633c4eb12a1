"""One Chromium for all tests of pages: to start it takes longer than to look at one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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
