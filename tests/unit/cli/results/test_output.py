"""`--format`, `--json` and `-o FILE`."""

from __future__ import annotations

import click
import pytest

from benchwright.cli.answer import json_option
from benchwright.cli.results.output import chosen_format
from benchwright.core.errors import InvalidInput


def asked_for_json() -> click.Context:
    return click.command()(json_option()(lambda: None)).make_context("report", ["--json"])


@pytest.mark.parametrize(
    ("output", "format_"),
    [
        ("r.html", "html"),
        ("R.HTML", "html"),
        ("r.md", "markdown"),
        ("r.csv", "csv"),
        ("r.json", "json"),
        ("r.txt", "screen"),
        ("r", "screen"),
        ("r.log", "screen"),
        ("/dev/null", "screen"),
        ("-", "screen"),
        (None, "screen"),
    ],
)
def test_the_files_ending_chooses_the_format(output: str | None, format_: str) -> None:
    assert chosen_format("report", None, output) == format_


def test_what_is_said_outright_counts_more_than_the_ending() -> None:
    assert chosen_format("report", "csv", "r.html") == "csv"
    with asked_for_json():
        assert chosen_format("report", None, "r.html") == "json"


def test_two_formats_contradict_each_other() -> None:
    with asked_for_json(), pytest.raises(InvalidInput, match="--json and --format html contradict each other"):
        chosen_format("report", "html", None)


def test_an_ending_that_a_command_cannot_write_is_no_text_file_of_that_name() -> None:
    with pytest.raises(InvalidInput, match=r"show cannot write .csv; it writes .html, .json, .txt"):
        chosen_format("show", None, "r.csv", known=("html", "json", "screen"))
