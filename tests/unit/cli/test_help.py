"""The help texts: `run --help` fits on a screen, and every command has an example."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from benchwright.cli.main import COMMANDS, GROUPS, MOVED, cli
from benchwright.options.table import OPTIONS, SORTS

SCREEN = 40  # lines


def help_of(*words: str) -> str:
    done = CliRunner().invoke(cli, list(words), env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.stdout


def flags_in(text: str) -> set[str]:
    """Those that are listed, not those that a text mentions."""
    return set(re.findall(r"^  (?:-\w, )?(--[a-z][\w-]*)", text.partition("Examples:")[0], re.MULTILINE))


def test_the_help_of_run_fits_on_a_screen_and_leads_to_the_rest() -> None:
    text = help_of("run", "--help")
    assert len(text.splitlines()) <= SCREEN
    assert {"--repeat", "--metric", "--runtime", "--resume", "--help"} <= flags_in(text)
    assert "--help-all: all" in " ".join(text.split())
    assert not {"--kvstore", "--build-timeout"} & flags_in(text)


def test_all_options_are_listed_with_help_all() -> None:
    listed = flags_in(help_of("run", "--help-all"))
    assert {option.flags[-1].partition("/")[0] for option in OPTIONS.values()} <= listed


@pytest.mark.parametrize("sort", SORTS)
def test_the_help_of_a_kind_lists_what_applies_to_it_and_nothing_else(sort: str) -> None:
    listed = flags_in(help_of("run", "--help", sort))
    for option in OPTIONS.values():
        flag = option.flags[-1].partition("/")[0]
        if not option.applies or sort in option.applies:
            assert flag in listed
        else:
            assert flag not in listed


def test_the_commands_are_listed_in_five_groups() -> None:
    text = help_of("--help")
    assert re.findall(r"^([A-Z][a-z ]+):$", text, re.MULTILINE) == ["Options", *GROUPS]
    assert re.findall(r"^  ([a-z]+) {2,}", text, re.MULTILINE) == list(COMMANDS)
    assert not set(MOVED) & set(COMMANDS)


@pytest.mark.parametrize("name", ["ab", "bisect", "watch"])
def test_commands_that_add_to_run_show_their_own_options_and_the_rest_on_demand(name: str) -> None:
    own, every = flags_in(help_of(name, "--help")), flags_in(help_of(name, "--help-all"))
    assert own < every
    assert {"--build", "--repo-dir", "--help"} <= own
    assert not own & {"--timeout", "--runtime", "--kvstore"}
    assert {"--timeout", "--runtime", "--kvstore"} <= every
    assert "--help-all also lists the options of run" in " ".join(help_of(name, "--help").split())
    text = help_of(name, "--help-all")
    assert text.index("--build") < text.index("--timeout")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    assert "Example" in help_of(name, "--help")
