"""The list of runs on a terminal."""

from __future__ import annotations

import msgspec

from benchwright.report.run_list import run_list


class Row(msgspec.Struct, kw_only=True):
    id: str
    uid: str = ""
    status: str = "ok"
    host: str = "node1"
    benchmarks: int = 1
    failed: int = 0
    annotation: str | None = None
    size_bytes: int = 2048


SHORT = "train.2026-11-15_10:00:00"
LONG = "the-nightly-run-of-the-whole-suite-on-all-machines.2026-11-15_10:00:00"


def test_a_long_id_stands_whole_on_a_line_of_its_own() -> None:
    lines = run_list([Row(id=SHORT), Row(id=LONG, annotation="a remark")]).splitlines()
    assert lines[2] == LONG
    assert lines[3] == lines[1].replace(SHORT, " " * len(SHORT))
    assert lines[4] == "  a remark"
    assert lines[0].index("status") == lines[1].index("ok")


def test_short_ids_take_one_line_each_and_control_characters_do_nothing() -> None:
    assert len(run_list([Row(id=SHORT), Row(id="b\x1b[31m")]).splitlines()) == 3
    assert "\x1b" not in run_list([Row(id=LONG + "\x1b[31m")])


def test_only_long_ids_are_lined_up_too() -> None:
    head, name, rest = run_list([Row(id=LONG)]).splitlines()
    assert name == LONG
    assert head.index("status") == rest.index("ok")


def test_an_id_that_no_line_holds_is_broken() -> None:
    lines = run_list([Row(id="x" * 150)]).splitlines()
    assert lines[1:3] == ["x" * 80, "x" * 70]


def test_no_runs() -> None:
    assert run_list([]) == "no runs\n"
