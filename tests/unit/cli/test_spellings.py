"""Options of other tools are read as ours."""

from __future__ import annotations

import pytest

from benchwright.cli.main import cli
from benchwright.cli.run import command
from benchwright.cli.spellings import in_our_words


@pytest.mark.compat
@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("--string_map {} x.json", "--string-map {} x.json"),
        ("--string_map={} x.json", "--string-map={} x.json"),
        ("--benchmark_file x.json --screen_reporter -q", "--config x.json -q"),
        ("--backend mkl --task-name a", "--runtime mkl --task a"),
        ("x.py --unknown_option 3", "x.py --unknown_option 3"),
        ("x.py -- --backend nccl", "x.py -- --backend nccl"),
        ("--script-args --backend x.py", "--script-args --backend x.py"),
        ("--name --string_map x.json --string_map {}", "--name --string_map x.json --string-map {}"),
        ("--backend --task-name", "--runtime --task-name"),
        ("--screen_reporter=1", "--screen_reporter=1"),
    ],
)
def test_only_options_that_a_command_has_are_respelt(typed: str, ours: str) -> None:
    assert in_our_words("run", command, typed.split()) == ours.split()


def test_a_command_without_the_option_refuses_it() -> None:
    with pytest.raises(Exception, match="--string_map"):
        cli.main(["show", "--string_map", "{}"], standalone_mode=False)
