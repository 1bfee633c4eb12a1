"""What holds for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from command_line import CommandLine
from plugin_package import install_plugins
from postgresql import Server, running_server

# Two busy cores make single examples slow now and then; that is no failure. `make test` uses `repeatable`: the
# same examples every time, so that a change fails by its own faults only; `make unit` uses few. Plain pytest looks for new ones.
hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture
def bw(tmp_path: Path) -> CommandLine:
    """The command line, run from a folder of its own, with a base folder of its own."""
    cwd = tmp_path / "elsewhere"
    cwd.mkdir()
    return CommandLine(tmp_path / "base", cwd)


@pytest.fixture
def script(bw: CommandLine) -> Callable[[str, str], Path]:
    """Writes a program into the folder the command line is run from."""

    def write(name: str, text: str) -> Path:
        path = bw.cwd / name
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """One for all tests that use it; `xdist_group("postgresql")` brings them to the same process."""
    with running_server() as started:
        yield started


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tests/plugins, installed: for PYTHONPATH."""
    return install_plugins(tmp_path_factory.mktemp("plugins") / "site")


@pytest.fixture
def plugins(plugin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/plugins is installed for this process."""
    monkeypatch.syspath_prepend(str(plugin_folder))


# Coverage in each of a test's processes costs more than all they do. It is had where a process is what is tested, and
# these are few; all other tests count by what they do in this one.
PROCESSES_MEASURED = tuple(
    str(Path(__file__).parent / path)
    for path in (
        *("unit/agent", "unit/benchprobe", "unit/benchmodels", "contracts/test_executor_contract.py"),
        "flows/test_voir_folders.py",
    )
)
_COVERAGE = "COVERAGE_PROCESS_CONFIG"
_coverage_of_processes: dict[str, str] = {}


def pytest_collection() -> None:
    if _COVERAGE in os.environ:
        _coverage_of_processes[_COVERAGE] = os.environ.pop(_COVERAGE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    os.environ.pop(_COVERAGE, None)
    if str(item.path).startswith(PROCESSES_MEASURED):
        os.environ.update(_coverage_of_processes)


def pytest_configure() -> None:
    """Tests of Ctrl-C and of closed terminals need signals that arrive; in the background a shell has them ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
