"""What a user sees while it runs: a panel on a terminal, lines in a pipe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine
from pseudo_terminal import TerminalProgram

pytest.importorskip("pyte")

LOOP = """\
import sys, time
from benchprobe import iterate
time.sleep(1)
for batch in iterate("train", [[0] * 4] * int(sys.argv[1]), batch_size=4):
    time.sleep(0.02)
"""


@pytest.fixture
def loops(bw: CommandLine, script: Callable[[str, str], Path]) -> list[str]:
    """A run of two loops and a failure."""
    script("loop.py", LOOP)
    bw.is_process = True
    bw.env.pop("CI", None)
    commands = ("python loop.py 150", "python loop.py 100", "python -c 'raise SystemExit(3)'")
    return ["run", *(word for c in commands for word in ("-c", c))]


def on_terminal(bw: CommandLine, args: list[str], columns: int = 80) -> TerminalProgram:
    env = {k: v for k, v in bw.env.items() if k not in ("COLUMNS", "LINES")}
    return TerminalProgram(bw.argv(*args), cwd=bw.cwd, env=env, columns=columns, lines=48)


def test_the_panel_shows_the_phase_and_results_stay_above_it(bw: CommandLine, loops: list[str]) -> None:
    with on_terminal(bw, loops) as terminal:
        first = terminal.until(lambda lines: any("measuring" in line and "items/s" in line for line in lines))
        assert first[-2].startswith("[1/3] loop.py")
        assert " of 150" in first[-1]
        second = terminal.until(lambda lines: any(line.startswith("[2/3]") for line in lines))
        assert any(line.startswith("loop.py 150: ") and line.endswith("items/s") for line in second)
        assert terminal.end() == 1
        after = terminal.lines()
        assert not any("[1/3]" in line or "[2/3]" in line for line in after)  # the panel is gone
        text = " ".join(after)  # a long line goes on in the next row
        assert "FAILED after" in text.partition("[3/3]")[2]
        assert "exit code 3" in text.replace("exit code  3", "exit code 3")
        assert not terminal.screen.cursor.hidden
        assert terminal.settings_now() == terminal.settings


def test_a_narrow_terminal_that_is_resized_shows_one_whole_panel(bw: CommandLine, loops: list[str]) -> None:
    with on_terminal(bw, loops, columns=44) as terminal:
        terminal.until(lambda lines: any("measuring" in line for line in lines))
        terminal.resize(100, 30)
        wide = terminal.until(lambda lines: any("step " in line for line in lines))
        assert sum("/3] loop" in line for line in wide) == 1, wide
        assert all(len(line) < 100 for line in wide)


def test_ctrl_c_leaves_the_terminal_as_it_was_and_says_how_to_go_on(bw: CommandLine, loops: list[str]) -> None:
    with on_terminal(bw, loops) as terminal:
        terminal.until(lambda lines: any("measuring" in line for line in lines))
        terminal.type(b"\x03")
        assert terminal.end() == 130
        shown = terminal.lines()
        assert "resume with: benchwright run --resume=" in "".join(shown)
        assert not any("measuring" in line for line in shown)
        assert terminal.settings_now() == terminal.settings
        assert terminal.raw.count(b"\x1b[?7l") == terminal.raw.count(b"\x1b[?7h")


def test_a_pipe_gets_one_line_for_each_event_without_control_characters(bw: CommandLine, loops: list[str]) -> None:
    said = bw(*loops, code=1).stderr.splitlines()
    assert all(line.isprintable() for line in said)
    starts = [line for line in said if line.endswith(": started")]
    assert [line.split(":")[0] for line in starts] == ["[1/3] loop.py 150.D0", "[2/3] loop.py 100.D0"]
    assert any(line.startswith("[1/3] loop.py 150.D0: ") and "items/s, " in line for line in said)
    assert said[-1].startswith("[3/3] ")
    assert "FAILED after" in said[-1]


@pytest.mark.long
def test_no_colour_is_shown_where_none_is_wanted(bw: CommandLine, loops: list[str]) -> None:
    bw.env["NO_COLOR"] = "1"
    with on_terminal(bw, loops) as terminal:
        terminal.end()
        assert b"\x1b[32m" not in terminal.raw
        assert b"\x1b[31m" not in terminal.raw
