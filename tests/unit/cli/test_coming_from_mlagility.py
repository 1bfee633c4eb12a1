"""docs/how-to/coming-from-mlagility.md is true: what it says exists, and what does not is refused with a remedy."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import benchwright
from benchwright.cli.main import cli, meant
from benchwright.compat.mlagility.hints import OPTIONS as HINTED
from benchwright.options.table import OPTIONS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "coming-from-mlagility.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
OURS = sorted({code for row in ROWS[1:] for code in re.findall(r"`([^`]+)`", row[1])})
FLAGS = {flag for option in OPTIONS.values() for flag in (*option.flags, *option.aliases)}


def command_of(words: list[str]) -> click.Command:
    """What `bw WORDS` calls."""
    found: click.Command = cli
    for word in cli.with_our_command(click.Context(cli), meant(words)):
        if not isinstance(found, click.Group) or word.startswith("-"):
            break
        inner = found.get_command(click.Context(found), word)
        assert inner is not None, f"bw {' '.join(words)}"
        found = inner
    return found


@pytest.mark.parametrize("code", [code for code in OURS if code.startswith("bw ")])
def test_every_command_of_ours_exists_and_has_the_options_named(code: str) -> None:
    words = code.split()[1:]
    if words[0] == "SCRIPT" or words[0].startswith("-"):
        words = ["run", *words]
    words = [word for word in words if word not in ("SCRIPT", "SCRIPT…", "NAME", "…")]
    if words[-1] == "--version":
        return
    command = command_of(words)
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("--")} <= known | {"--help"}


@pytest.mark.parametrize("code", [code for code in OURS if code.startswith("--")])
def test_every_option_of_ours_exists(code: str) -> None:
    assert code.split()[0] in FLAGS | {"--all", "--help"}, code


@pytest.mark.parametrize("code", [code for code in OURS if code.startswith("benchwright.")])
def test_every_function_of_ours_exists(code: str) -> None:
    assert hasattr(benchwright, re.split(r"[.(]", code)[1])


def test_the_tests_named_are_there() -> None:
    named = set(re.findall(r"`(tests/[\w/.]+)`", PAGE))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("option", HINTED)
def test_an_option_that_does_not_exist_is_refused_with_a_remedy(option: str) -> None:
    assert option not in FLAGS
    assert f"`{option}" in PAGE or option.startswith("--groq"), option
    done = CliRunner().invoke(cli, ["run", "x.py", option])
    assert done.exit_code == 2
    assert HINTED[option] in " ".join(done.output.split())


def test_words_of_mlagility_mean_ours() -> None:
    context = click.Context(cli)
    for theirs, ours in (("cache print x", "cache stats x"), ("cache report -d A B", "report --all -d A B")):
        assert cli.with_our_command(context, theirs.split()) == ours.split()
    for same in ("cache list", "cache", "cache --json", "runs print", "run report"):
        assert cli.with_our_command(context, same.split()) == same.split()
    assert meant(["version"]) == ["--version"]
    assert meant(["models", "location"]) == ["find", "--corpora", "location"]


def test_find_lists_what_plan_plans_of_a_corpus_that_is_a_zoo() -> None:
    pytest.importorskip("transformers")
    words = [
        "--all",
        "--search-dir",
        "transformers",
        "--select",
        "task=detection",
        "--python",
        sys.executable,
        "--json",
    ]
    found, planned = (json.loads(CliRunner().invoke(cli, [command, *words]).stdout) for command in ("find", "plan"))
    names = {benchmark["name"].partition("@")[0] for benchmark in planned["benchmarks"]}
    assert names == {model["target"] for model in found["models"]}
    assert names
