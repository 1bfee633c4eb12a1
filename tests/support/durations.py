"""A pytest plug-in: CPU seconds of each test, its processes included, by folder and test: `pytest -p durations`.

CPU time rather than wall time: tests run beside each other, and the machine is rarely quiet. A process counts once it has
ended and was waited for, so what a test leaves running is not counted. Fixtures that many tests share count for the first.
"""

from __future__ import annotations

import resource
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Any, cast

import pytest

DEAREST = 100
PROPERTY = "cpu_seconds"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--durations-file", metavar="FILE", help="write `own, children, wall` seconds of every test to this TSV file"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    item.stash[_BEFORE] = _seconds()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield)
    finally:
        begun: tuple[float, float, float] = item.stash[_BEFORE]
        spent = [after - before for before, after in zip(begun, _seconds(), strict=True)]
        item.user_properties.append((PROPERTY, spent))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # one of xdist's workers, which has seen a part only
        return
    _write_folders(terminalreporter, _spent)
    terminalreporter.section(f"the {DEAREST} dearest tests: CPU seconds, their processes included")
    for test, (own, children, _) in sorted(_spent.items(), key=lambda row: -row[1][0] - row[1][1])[:DEAREST]:
        terminalreporter.write_line(f"{own + children:7.2f}  {test}")
    if file := config.getoption("--durations-file"):
        lines = ("\t".join([test, *(f"{each:.3f}" for each in seconds)]) for test, seconds in sorted(_spent.items()))
        with open(file, "w", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called where the results are shown: in xdist's controller, not in its workers."""
    for name, seconds in report.user_properties:
        if name == PROPERTY:
            _spent[report.nodeid.split("@")[0]] = tuple(cast("list[float]", seconds))


def _write_folders(terminalreporter: Any, spent: dict[str, tuple[float, ...]]) -> None:
    tests: Counter[str] = Counter()
    own: dict[str, float] = defaultdict(float)
    children: dict[str, float] = defaultdict(float)
    for test, seconds in spent.items():
        folder = _folder(test)
        tests[folder] += 1
        own[folder] += seconds[0]
        children[folder] += seconds[1]
    terminalreporter.section("CPU seconds by folder")
    terminalreporter.write_line(f"{'folder':36} {'tests':>6} {'own':>8} {'children':>9} {'all':>8}")
    for folder in sorted(tests, key=lambda each: -own[each] - children[each]):
        both = own[folder] + children[folder]
        terminalreporter.write_line(
            f"{folder:36} {tests[folder]:6} {own[folder]:8.1f} {children[folder]:9.1f} {both:8.1f}"
        )
    total = sum(own.values()), sum(children.values())
    terminalreporter.write_line(f"{'all':36} {tests.total():6} {total[0]:8.1f} {total[1]:9.1f} {sum(total):8.1f}")


def _folder(test: str) -> str:
    """`tests/flows`, or a part of the unit tests: `tests/unit/store`."""
    parts = PurePosixPath(test.split("::")[0]).parent.parts
    return "/".join(parts[: 3 if parts[1:2] == ("unit",) else 2])


def _seconds() -> tuple[float, float, float]:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time(), children.ru_utime + children.ru_stime, time.monotonic()


_BEFORE = pytest.StashKey[tuple[float, float, float]]()
_spent: dict[str, tuple[float, ...]] = {}
