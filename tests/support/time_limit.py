"""A pytest plug-in: begin no test after a moment: `pytest -p time_limit --until SECONDS_SINCE_1970`."""

from __future__ import annotations

import time

import pytest

LEFT_OUT = "left out: the time was over"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--until", type=float, help="begin no test after this time, in seconds since 1970")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if time.time() > item.config.getoption("--until"):
        pytest.skip(LEFT_OUT)
