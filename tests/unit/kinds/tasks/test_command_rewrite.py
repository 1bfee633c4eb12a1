"""Flags written over: the right one, and nothing else."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.kinds.tasks.command_rewrite import FlagChange, gpus_change, nearest_flag, rewrite_line


def rewritten(line: str, *changes: FlagChange) -> str:
    return rewrite_line(line, changes).line


@pytest.mark.parametrize(
    ("line", "num_gpus", "expected"),
    [
        ("t --gpus 8 --epochs 20", 2, "t --gpus 2 --epochs 20"),
        ("t --gpus=8 --epochs 20", 2, "t --gpus=2 --epochs 20"),
        ("t --gpus 16", 8, "t --gpus 8"),
        ("t --gpus 0 x", 4, "t --gpus 4 x"),
        ("t --gpus 8 --epochs 20", 0, "t --epochs 20"),
        ("t --epochs 20 --gpus 8", 0, "t --epochs 20"),
        ("t --gpus=8 x", 0, "t x"),
        ("t --gpus 1,0,2,3 x", 0, "t x"),
        ("t --gpus 1,0,2,3", 8, "t --gpus 0,1,2,3,4,5,6,7"),
        ("t --gpus=1,0,2,3", 2, "t --gpus=0,1"),
        ("t --gpus 1,0,2,3", 4, "t --gpus 1,0,2,3"),
        ("t --gpus all", 4, "t --gpus 4"),
        ("t --num_gpus=1 --num-gpus 2 --ngpus 3 -gpus 4", 8, "t --num_gpus=1 --num-gpus 2 --ngpus 3 -gpus 4"),
        ("t '--gpus 4'", 8, "t '--gpus 4'"),
        ("t  --x   'a  b'  --gpus 4   # y", 8, "t  --x   'a  b'  --gpus 8   # y"),
    ],
)
def test_the_number_of_gpus(line: str, num_gpus: int, expected: str) -> None:
    assert rewritten(line, gpus_change(num_gpus)) == expected


def test_other_epochs_stay() -> None:
    change = FlagChange("--epochs", "2")
    assert (
        rewritten("t --num-epochs 9 --epochs 20 --epochs-per-save 3", change)
        == "t --num-epochs 9 --epochs 2 --epochs-per-save 3"
    )


def test_a_flag_that_is_not_there_is_reported_and_not_added_unless_asked() -> None:
    left = rewrite_line("t --a 1", [FlagChange("--epochs", "2"), gpus_change(4)])
    assert left.line == "t --a 1"
    assert [change.flag for change in left.missing] == ["--epochs", "--gpus"]
    assert rewritten("t --a 1", FlagChange("--epochs", "2", add=True)) == "t --a 1 --epochs 2"


def test_removing_what_is_not_there_changes_nothing() -> None:
    assert rewrite_line("t --a 1", [FlagChange("--b", None)]) == rewrite_line("t --a 1", [])


def test_a_flag_without_a_value_gets_one_and_loses_none_of_its_neighbours() -> None:
    assert rewritten("t --amp --epochs 3", FlagChange("--amp", "O2")) == "t --amp O2 --epochs 3"
    assert rewritten("t --amp --epochs 3", FlagChange("--amp", None)) == "t --epochs 3"


def test_a_negative_number_is_a_value() -> None:
    assert rewritten("t --lr -0.1 x", FlagChange("--lr", "-2")) == "t --lr -2 x"


def test_every_occurrence_is_written_over() -> None:
    assert rewritten("t --epochs 1 x --epochs=2", FlagChange("--epochs", "5")) == "t --epochs 5 x --epochs=5"


def test_a_value_with_spaces_is_quoted() -> None:
    assert rewritten("t --name x", FlagChange("--name", "a b")) == "t --name 'a b'"


def test_a_line_for_a_shell_is_changed_in_all_its_parts_and_keeps_its_operators() -> None:
    line = "cd x && a --gpus 4 | tee log; b --gpus 2>/dev/null"
    assert rewritten(line, gpus_change(8)) == "cd x && a --gpus 8 | tee log; b --gpus 8>/dev/null"


def test_a_flag_is_not_added_to_a_line_of_several_commands() -> None:
    result = rewrite_line("a | b", [FlagChange("--x", "1", add=True)])
    assert (result.line, [c.flag for c in result.missing]) == ("a | b", ["--x"])


word = st.text(alphabet="abgpus,0123=- '\"$%|", max_size=8)
flag_value = st.text(alphabet="ab01,. '\"$-", min_size=1, max_size=6)


@given(st.lists(word, max_size=8), st.lists(word, max_size=8), flag_value)
def test_only_the_value_of_the_flag_changes(before: list[str], after: list[str], value: str) -> None:
    line = shlex.join([*before, "--target", "old", *after])
    change = FlagChange("--target", value)
    # A value right behind a neighbour's `--target` cannot arise: the alphabet has no t.
    assert shlex.split(rewritten(line, change)) == [*before, "--target", value, *after]


@given(st.lists(word, max_size=8), st.lists(word, max_size=8))
def test_only_the_flag_and_its_value_are_removed(before: list[str], after: list[str]) -> None:
    line = shlex.join([*before, "--target", "old", *after])
    assert shlex.split(rewritten(line, FlagChange("--target", None))) == [*before, *after]


@given(st.lists(word, min_size=1, max_size=8), flag_value)
def test_an_added_flag_comes_last_and_leaves_the_rest(words: list[str], value: str) -> None:
    changed = rewritten(shlex.join(words), FlagChange("--target", value, add=True))
    assert shlex.split(changed) == [*words, "--target", value]


@given(st.lists(word, max_size=8), st.integers(0, 16))
def test_a_command_without_the_flag_is_left_exactly_as_it_is(words: list[str], num_gpus: int) -> None:
    line = shlex.join(w for w in words if w.partition("=")[0] != "--gpus")
    assert rewritten(line, gpus_change(num_gpus)) == line


def test_the_flag_that_may_be_meant_is_found() -> None:
    assert nearest_flag("t --kv-store device --gpus 4", "--kvstore") == "--kv-store"
    assert nearest_flag("t --gpus 4", "--kvstore") is None
