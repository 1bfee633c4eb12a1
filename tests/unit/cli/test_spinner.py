"""A command that takes a while says what it does."""

from __future__ import annotations

import io
import time

import click
import pytest
from processes import wait_for

from benchwright.cli import spinner as working_module
from benchwright.cli.answer import json_option
from benchwright.cli.spinner import Working
from benchwright.runner import progress as progress_module
from benchwright.runner import terminal


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    monkeypatch.setattr(working_module, "SLOW_S", 0.05)
    monkeypatch.setattr(progress_module, "_FIRST_WORD_OF_STEP_S", 0.05)
    stream = io.StringIO()
    monkeypatch.setattr(terminal, "surface_of", lambda _: terminal.PlainLines(stream))
    monkeypatch.setattr(working_module.click, "echo", lambda text, err: stream.write(f"{text}\n"))
    return stream


def test_a_slow_command_says_what_it_does_now_and_once_is_enough(said: io.StringIO) -> None:
    with Working("opening the store") as working:
        for number in range(3):
            working.now(f"adding run {number + 1} of 3")
        assert wait_for(lambda: "adding run 3 of 3" in said.getvalue())
        working.now("adding the last")
        time.sleep(0.4)
        working.echo("done", err=True)
    assert said.getvalue() == "adding run 3 of 3\ndone\n"


def test_a_quick_command_and_one_that_prints_json_say_nothing(
    said: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    with click.command()(json_option()(lambda: None)).make_context("report", ["--json"]), Working("quiet"):
        time.sleep(0.3)
    monkeypatch.setattr(working_module, "SLOW_S", 60.0)
    with Working("quick") as working:
        working.now("still quick")
    assert said.getvalue() == ""


def test_an_error_ends_it(said: io.StringIO) -> None:
    working = Working("failing")
    assert wait_for(lambda: "failing" in said.getvalue())
    working.__exit__(KeyError, KeyError(), None)
    shown = said.getvalue()
    working.now("nothing")
    assert said.getvalue() == shown
