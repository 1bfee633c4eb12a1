"""What is wrong with a task file is said once, with the line and what to do."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.kinds.tasks.read import TaskOverrides, read_tasks, task_faults
from benchwright.kinds.tasks.syntax import read_task_file

GOOD = "patterns = ['x (.)']\nmetrics = ['m']\ncompute_method = ['last']\ncommand_to_execute = true\n"


def complaint(tmp_path: Path, content: str | bytes) -> str:
    path = tmp_path / "tasks.cfg"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InvalidInput) as caught:
        read_tasks(str(path))
    error = caught.value
    assert error.where == str(path)
    assert error.remedy, "every fault has a remedy"
    if error.line is not None and error.text is not None and error.column is not None:
        assert error.column <= len(error.text) + 1
    return str(error).replace(str(tmp_path) + "/", "")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "tasks.cfg: the file is empty"),
        ("\ufeff", "tasks.cfg: the file is empty"),
        (" \n# only a comment\n", "tasks.cfg: the file has no tasks"),
        ("[DEFAULT]\nnum_gpus = 1\n", "tasks.cfg: the file has no tasks"),
        ("[metrics_a]\npatterns=[]\nmetrics=[]\ncompute_method=[]\n", "tasks.cfg: the file has only metrics policies"),
        (f"[a]\n{GOOD}[b]\n{GOOD}[a]\n{GOOD}", "tasks.cfg:11:1: section [a] appears twice, first in line 1"),
        (f"[a]\n{GOOD}Metrics = []\n", "tasks.cfg:6:1: 'metrics' appears twice in [a], first in line 3"),
        ("[b]\nnum_gpus = 1\n", "tasks.cfg:1: [b] has no command_to_execute; add it"),
        (f"metrics = 1\n[a]\n{GOOD}", "tasks.cfg:1:1: 'metrics' comes before any section"),
        (f"[a]\n{GOOD}hello\n", "tasks.cfg:6:1: this is neither [section] nor key = value"),
        (f"[a\n{GOOD}", "tasks.cfg:1:1: this is not a section"),
        (f"[]\n{GOOD}", "tasks.cfg:1:1: this is not a section"),
        (f"[a] b\n{GOOD}", "tasks.cfg:1:1: this is not a section"),
        (f"[a]\n{GOOD}numgpus = 1\n", "tasks.cfg:6:1: 'numgpus' is not a key of a task; did you mean 'num_gpus'?"),
        (f"[a]\n{GOOD}num_gpus = two\n", "tasks.cfg:6:12: num_gpus is 'two', not a number of GPUs"),
        (f"[a]\n{GOOD}num_gpus = -1\n", "tasks.cfg:6:12: num_gpus is '-1'"),
        (f"[a]\n{GOOD}num_gpus =\n", "tasks.cfg:6:11: num_gpus is ''"),
        (f"[a]\n{GOOD}".replace("true", ""), "tasks.cfg:5:21: the command is empty"),
    ],
)  # fmt: skip
def test_the_shape_of_the_file(tmp_path: Path, content: str, expected: str) -> None:
    assert complaint(tmp_path, content).startswith(expected)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("['m']", "['m', 'n']", "tasks.cfg:3:1: the lists of [a] have different lengths: patterns 1, metrics 2, compute_method 1"),
        ("['last']", "[]", "tasks.cfg:4:1: the lists of [a] have different lengths: patterns 1, metrics 1, compute_method 0"),
        ("metrics = ['m']\n", "", "tasks.cfg:1: [a] has patterns and compute_method but no metrics"),
        ("['m']", "'m'", "tasks.cfg:3:11: 'metrics' is a string, not a list; put it in brackets: ['m']"),
        ("['m']", "{'m': 1}", "tasks.cfg:3:11: 'metrics' is not a list; write"),
        ("['m']", "m", "tasks.cfg:3:11: 'metrics' is not a list"),
        ("['m']", "", "tasks.cfg:3:10: 'metrics' is not a list"),
        ("['m']", "['m'", "tasks.cfg:3:11: 'metrics' is not a list: '[' was never closed"),
        ("['m']", "['é', 'm]", "tasks.cfg:3:17: 'metrics' is not a list: unterminated string literal"),
        ("['m']", "['m', 3]", "tasks.cfg:3:17: an element of 'metrics' is not a string"),
        ("['m']", "[__import__('os').system('false')]", "tasks.cfg:3:12: an element of 'metrics' is not a string"),
        ("['m']", "[" * 5000, "tasks.cfg:3:"),
        ("['m']", "['']", "tasks.cfg:3:12: '' cannot be the name of a metric"),
        ("['last']", "['averge']", "tasks.cfg:4:19: 'averge' is not a compute method; did you mean 'average'?"),
        ("['last']", "['p200']", "tasks.cfg:4:19: 'p200' is not a compute method"),
        ("['x (.)']", "['é x ((.)']", "tasks.cfg:2:18: this is not a regular expression: missing ), unterminated subpattern"),
        ("['x (.)']", "['*x']", "tasks.cfg:2:14: this is not a regular expression: nothing to repeat"),
        ("['x (.)']", r"['\x41\x28']", "tasks.cfg:2:13: this is not a regular expression"),
        ("['x (.)']", r"['\bx (.)']", r"tasks.cfg:2:13: '\b' in a plain string is a backspace"),
        ("['x (.)']", "['']", "tasks.cfg:2:13: the pattern is empty"),
        ("['x (.)']", "['x (.)',\n  'y (.']", "tasks.cfg:2:1: the lists of [a]"),
        ("= true", "= a 'b", "tasks.cfg:5:24: a quote (') opens here and never closes"),
    ],
)  # fmt: skip
def test_the_values_of_a_task(tmp_path: Path, old: str, new: str, expected: str) -> None:
    content = f"[a]\n{GOOD}"
    assert old in content
    assert complaint(tmp_path, content.replace(old, new)).startswith(expected)


def test_a_metric_named_twice_says_both_lines(tmp_path: Path) -> None:
    content = "[a]\npatterns = ['x', 'y']\nmetrics = ['m',\n  'm']\ncompute_method = ['last', 'last']\ncommand_to_execute = true\n"
    assert complaint(tmp_path, content).startswith("tasks.cfg:4:3: metric 'm' appears twice, first in line 3")


def test_a_fault_in_a_later_line_of_a_list_is_pointed_at_there(tmp_path: Path) -> None:
    content = "[a]\npatterns = [\n    'x (.)',\n    # why\n    'é (',\n  ]\nmetrics = ['m', 'n']\ncompute_method = ['last', 'last']\ncommand_to_execute = true\n"
    message = complaint(tmp_path, content)
    assert message.startswith("tasks.cfg:5:8: this is not a regular expression: missing )")
    assert message.splitlines()[-1] == "    " + " " * 7 + "^"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_what_is_not_utf_8_names_the_byte_and_its_line(tmp_path: Path, mark: bytes) -> None:
    message = complaint(tmp_path, mark + b"[a]\nmetrics = ['m\xe9tric']\n")
    offset = len(mark) + len(b"[a]\nmetrics = ['m")
    assert message.startswith(f"tasks.cfg:2:14: byte 0xe9 at offset {offset} is not UTF-8; save the file as UTF-8")
    assert r"m\xe9tric" in message


def test_utf_16_and_binary_files_are_told_so(tmp_path: Path) -> None:
    assert "is not UTF-8" in complaint(tmp_path, "[a]\n".encode("utf-16"))
    assert complaint(tmp_path, b"[a]\nx = \0\n").startswith("tasks.cfg:2: a NUL byte")


def test_a_broken_task_does_not_keep_another_from_being_chosen(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text(f"[bad]\nnum_gpus = x\n[good]\n{GOOD}")
    assert [b.name for b in read_tasks(str(path), tasks=["good"])] == ["good"]


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ("num_gpus = 1\n", "has no command_to_execute; add it"),
        ("", "has no command_to_execute; add it"),
        (GOOD.replace("['last']", "['last', 'last']"), "have different lengths"),
        (GOOD.replace("['last']", "['averge']"), "did you mean 'average'?"),
        (GOOD.replace("['last']", "['average_aggregate']"), "set DEEPLEARNING_WORKERS_COUNT"),
        (GOOD + "numgpus = 1\n", "did you mean 'num_gpus'?"),
        (GOOD + "num_gpus = two\n", "not a number of GPUs"),
    ],
)
def test_a_task_that_cannot_run_carries_its_fault_and_the_others_are_read(
    tmp_path: Path, section: str, fault: str
) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text(f"[before]\n{GOOD}[wrong]\n{section}[after]\n{GOOD}")
    before, wrong, after = read_tasks(str(path))
    assert (before.fault, after.fault) == (None, None)
    assert wrong.fault is not None
    assert fault in wrong.fault
    assert wrong.fault.startswith(f"{path}:")
    assert "\n" not in wrong.fault
    with pytest.raises(InvalidInput, match=re.escape(fault)):
        read_tasks(str(path), tasks=["wrong"])


@pytest.mark.parametrize("name", ["metrics_speed", "speed_metric", "policy"])
def test_a_section_of_patterns_alone_is_a_policy_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / "tasks.cfg"
    patterns = GOOD.replace("command_to_execute = true\n", "")
    path.write_text(f"[{name}]\n{patterns}[task]\n{GOOD}")
    assert [b.name for b in read_tasks(str(path))] == ["task"]
    [combined] = read_tasks(str(path), overrides=TaskOverrides(metrics_policy=name, command_to_execute="true"))
    assert [m.name for m in combined.metrics] == ["m"]
    with pytest.raises(InvalidInput, match="is a metrics policy and has no command"):
        read_tasks(str(path), tasks=[name])


def test_a_broken_policy_is_told_by_validate_and_keeps_no_task_from_running(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text(f"[policy]\npatterns = ['(']\nmetrics = ['m']\ncompute_method = ['last']\n[task]\n{GOOD}")
    assert [b.fault for b in read_tasks(str(path))] == [None]
    [fault] = task_faults(str(path))
    assert "this is not a regular expression" in str(fault)


def test_a_file_that_is_not_there_or_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent\.cfg: cannot be read: No such file"):
        read_tasks(str(tmp_path / "absent.cfg"))
    with pytest.raises(InvalidInput, match="this is not a file"):
        read_tasks(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="this is not a file"):
        read_tasks(str(tmp_path / "pipe"))


def test_carriage_returns_a_byte_order_mark_and_percent_signs_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_bytes(b"\xef\xbb\xbf[a]\r\ncommand_to_execute = train --split 90% --x %(y)s\r\n")
    assert read_task_file(str(path)).sections["a"].entries["command_to_execute"].value == "train --split 90% --x %(y)s"


def test_a_whole_file_may_be_indented_and_values_go_on_in_deeper_lines(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text(
        " [a]\n patterns = [\n   'x',\n\n   'y']\n command_to_execute = true\n [b]\n command_to_execute: false\n"
    )
    file = read_task_file(str(path))
    assert list(file.sections) == ["a", "b"]
    entry = file.sections["a"].entries["patterns"]
    assert entry.value == "[\n'x',\n'y']"
    assert (entry.place_of(2).line, entry.place_of(2).column) == (3, 4)


def test_defaults_are_in_every_section_that_lacks_them(tmp_path: Path) -> None:
    path = tmp_path / "tasks.cfg"
    path.write_text("[DEFAULT]\nnum_gpus = 2\n[a]\ncommand_to_execute = x\n[b]\nnum_gpus = 0\ncommand_to_execute = y\n")
    assert [b.placement.needs_devices for b in read_tasks(str(path))] == [2, 0]


def test_the_line_is_shown_with_a_mark_below_it(tmp_path: Path) -> None:
    message = complaint(tmp_path, "[a]\ncommand_to_execute = python a.py 'tee log\n")
    assert message == (
        "tasks.cfg:2:34: a quote (') opens here and never closes; close it, or put a backslash before it\n"
        "    command_to_execute = python a.py 'tee log\n"
        "    " + " " * 33 + "^"
    )
