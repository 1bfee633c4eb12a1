"""The panel as a terminal shows it, and plain lines."""

from __future__ import annotations

import os
from io import StringIO

import pytest

from benchwright.runner.terminal import PlainLines, TerminalPanel, open_progress

pyte = pytest.importorskip("pyte")


class Terminal(StringIO):
    """A screen that shows what is written to it."""

    def __init__(self, columns: int = 40, lines: int = 8) -> None:
        super().__init__()
        self.screen = pyte.Screen(columns, lines)
        self.shown = pyte.Stream(self.screen)
        self.writes = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.writes += 1
        self.shown.feed(text.replace("\n", "\r\n").replace("\r\r", "\r"))  # as the line discipline does
        return len(text)

    def lines(self) -> list[str]:
        shown = [line.rstrip() for line in self.screen.display]
        return shown[: max((i + 1 for i, line in enumerate(shown) if line), default=0)]


def panel(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> TerminalPanel:
    made = TerminalPanel(terminal)
    size = lambda: os.terminal_size((terminal.screen.columns, terminal.screen.lines))  # noqa: E731
    monkeypatch.setattr(made, "_terminal_size", size)
    return made


class Gone(StringIO):
    tried = 0

    def write(self, text: str) -> int:
        self.tried += 1
        raise BrokenPipeError


def test_a_panel_is_redrawn_in_its_place_and_what_is_said_stays_above(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    shown = panel(terminal, monkeypatch)
    shown.draw(["[1/2] a  0:01", "  warm-up"])
    shown.draw(["[1/2] a  0:02", "  measuring  10 items/s"])
    shown.say("a: 10 items/s")
    shown.draw(["[2/2] b  0:03"])
    assert terminal.lines() == ["a: 10 items/s", "[2/2] b  0:03"]
    shown.close()
    assert terminal.lines() == ["a: 10 items/s"]
    assert (terminal.screen.cursor.x, terminal.screen.cursor.y, terminal.screen.cursor.hidden) == (0, 1, False)


def test_an_unchanged_panel_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    shown = panel(terminal, monkeypatch)
    for _ in range(5):
        shown.draw(["the same", "lines"])
    assert terminal.writes == 1


def test_a_panel_at_the_bottom_of_the_screen_scrolls_and_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(lines=4)
    shown = panel(terminal, monkeypatch)
    for number in range(10):
        shown.draw([f"head {number}", "  job"])
        shown.say(f"result {number}")
    assert terminal.lines() == ["result 8", "result 9", "head 9", "  job"]


@pytest.mark.parametrize("columns", [12, 25])
def test_a_terminal_made_narrower_leaves_no_debris(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    terminal = Terminal(columns=40, lines=10)
    shown = panel(terminal, monkeypatch)
    shown.say("kept")
    shown.draw(["x" * 36, "y" * 20])
    # What a terminal does: long lines go on in the next row. pyte would cut them.
    wrapped = ["x" * 36, "y" * 20]
    terminal.screen.resize(10, columns)
    terminal.screen.reset()
    terminal.shown.feed("kept\r\n" + "\r\n".join(wrapped))
    shown.draw(["short", "er"])
    assert terminal.lines() == ["kept", "short", "er"]


def test_wide_characters_and_lines_that_are_too_long_do_not_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(columns=20)
    shown = panel(terminal, monkeypatch)
    shown.draw(["模型训练脚本很长的名字很长", "b"])
    shown.draw(["模型训练脚本很长的名字很长", "c"])
    assert terminal.lines()[1:] == ["c"]


def test_control_characters_of_names_do_not_reach_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    panel(terminal, monkeypatch).draw(["a\x1b[2Jb\x07\nc"])
    assert terminal.lines() == ["a [2Jb  c"]


def test_output_of_programs_stays_apart_from_the_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    shown = panel(terminal, monkeypatch)
    shown.draw(["panel"])
    shown.echo("half a ")
    shown.draw(["panel"])  # not in the midst of a line
    shown.echo("line\n")
    shown.draw(["panel"])
    assert terminal.lines() == ["half a line", "panel"]


def test_colours_only_where_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    written: list[str] = []
    plain = panel(Terminal(), monkeypatch)
    monkeypatch.setattr(plain, "_write", written.append)
    plain.draw(["━━──"])
    plain.say("FAILED")
    assert "\x1b[3" not in "".join(written)
    assert "\x1b[2m" not in "".join(written)


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("TERM", "dumb")])
def test_ci_and_dumb_terminals_get_plain_lines(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(open_progress(stream=Terminal())._surface, TerminalPanel)
    monkeypatch.setenv(name, value)
    assert not isinstance(open_progress(stream=Terminal())._surface, TerminalPanel)


def test_a_pipe_gets_a_line_for_each_step_and_each_end() -> None:
    stream = StringIO()
    with open_progress(stream=stream) as progress:
        progress.on_step("torch", "creating an environment")
        progress.on_step_done("torch", "built in 2.5 s, 1 package")
        progress.on_step_done("mlx")
        progress.on_output("b", "half")
        progress.on_note("voir is added")
    assert stream.getvalue().splitlines() == [
        "torch: creating an environment",
        "torch: built in 2.5 s, 1 package",
        "half",
        "note: voir is added",
    ]


def test_nobody_reads_and_the_work_goes_on() -> None:
    heard, unheard = Gone(), Gone()
    with open_progress(stream=heard) as progress:
        progress.on_step("torch", "installing")
        progress.on_note("more")
    with open_progress(quiet=True, stream=unheard) as progress:
        progress.on_step("torch", "installing")
    PlainLines(None).say("to nobody")
    assert (heard.tried, unheard.tried) == (1, 0)
