"""Every option of FAI-PEP's repo driver has an equivalent, and the page that says so is true."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from benchwright.cli.regressions.watch import command
from benchwright.cli.spellings import in_our_words

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "coming-from-fai-pep.md"
DRIVER = (
    "base_commit branch commit commit_file exec_dir framework frameworks_dir interval platforms regression "
    "remote_repository repo repo_dir same_host status_file ab_testing step env"
).split()


def rows() -> dict[str, str]:
    """Of the table: their option → what is said of ours."""
    part = PAGE.read_text(encoding="utf-8").split("## Options of the repo driver")[1].split("\n## ")[0]
    return {found[1]: found[2] for found in re.finditer(r"^\| `--(\w+)[^|]*\| (.*)$", part, re.MULTILINE)}


def flags() -> set[str]:
    return {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.compat
@pytest.mark.parametrize("name", DRIVER)
def test_an_option_of_the_repo_driver_is_in_the_table_and_understood_in_both_spellings(name: str) -> None:
    assert name in rows()
    assert f"--{name.replace('_', '-')}" in flags()
    context = click.Context(command, info_name="watch")
    value = {"interval": ["60"], "step": ["2"], "repo": ["git"], "env": ["A=1"]}.get(name, ["x"])
    is_flag = name in ("regression", "same_host", "ab_testing")
    words = ["--repo_dir", ".", f"--{name}", *([] if is_flag else value), "--", "true"]
    command.parse_args(context, in_our_words("watch", command, words))


def test_flags_that_the_table_names_exist() -> None:
    named = {flag for text in rows().values() for flag in re.findall(r"`(--[a-z-]+)", text)}
    assert named - flags() == set()


def test_help_is_short_enough_and_has_examples() -> None:
    context = click.Context(command, info_name="watch", terminal_width=80, max_content_width=80)
    text = command.get_help(context)
    assert "Examples:" in text
    assert max(map(len, text.splitlines())) <= 80
