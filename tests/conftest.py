"""What holds for all tests."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from command_line import CommandLine

# Two busy cores make single examples slow now and then; that is no failure.
hypothesis.settings.register_profile("shared-machine", deadline=None)
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


def pytest_configure() -> None:
    """Tests of Ctrl-C and of closed terminals need signals that arrive; in the background a shell has them ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
