"""Text or JSON: a command gives both, and one of them is printed."""

from __future__ import annotations

import json

import click
import msgspec
import pytest
from click.testing import CliRunner

from benchwright.cli.answer import answer, in_json, json_option


class Row(msgspec.Struct):
    name: str
    size: int = 1


@click.command()
@json_option()
def rows() -> None:
    answer(lambda: {"rows": [Row("a"), Row("b")]}, lambda: "a\nb")


@pytest.mark.parametrize("text", ["a line", "a line\n", "", "two\nlines"])
def test_text_ends_with_one_line_end_and_nothing_prints_nothing(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer(lambda: 1 / 0, lambda: text)
    assert capsys.readouterr().out == (f"{text.strip()}\n" if text else "")


def test_json_is_printed_where_it_was_asked_for() -> None:
    assert CliRunner().invoke(rows, []).output == "a\nb\n"
    printed = json.loads(CliRunner().invoke(rows, ["--json"]).output)
    assert printed == {"rows": [{"name": "a", "size": 1}, {"name": "b", "size": 1}]}


def test_outside_of_a_command_nobody_asked() -> None:
    assert not in_json()
