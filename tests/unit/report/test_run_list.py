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
    headline: str = ""
    ending: str = ""
    annotation: str | None = None
    revision: str = ""
    size_bytes: int = 2048


SHORT = "train.2026-11-15_10:00:00"
LONG = "the-nightly-run-of-the-whole-suite-on-all-machines.2026-11-15_10:00:00"


def test_how_a_run_was_killed_stands_whole_below_it() -> None:
    ending = f"killed after 1 of 3 launches; continue: bw run --resume={LONG}"
    lines = run_list([Row(id=SHORT, status="killed", ending=ending)]).splitlines()
    assert lines[2:] == ["   killed after 1 of 3 launches", f"   continue: bw run --resume={LONG}"]


def test_a_long_id_stands_whole_on_a_line_of_its_own() -> None:
    lines = run_list([Row(id=SHORT), Row(id=LONG, annotation="a remark")]).splitlines()
    assert lines[2] == f" {LONG}"
    assert lines[3] == lines[1].replace(SHORT, " " * len(SHORT))
    assert lines[4] == "   a remark"
    assert lines[0].index("status") == lines[1].index("ok")


def test_short_ids_take_one_line_each_and_control_characters_do_nothing() -> None:
    assert len(run_list([Row(id=SHORT), Row(id="b\x1b[31m", host="node2")]).splitlines()) == 3
    assert "\x1b" not in run_list([Row(id=LONG + "\x1b[31m")])


def test_only_long_ids_are_lined_up_too() -> None:
    head, name, rest = run_list([Row(id=LONG)]).splitlines()
    assert name == f" {LONG}"
    assert head.index("status") == rest.index("ok")


def test_an_id_that_no_line_holds_is_broken() -> None:
    lines = run_list([Row(id="x" * 150)]).splitlines()
    assert lines[1:3] == [" " + "x" * 79, " " + "x" * 71]


def test_no_runs() -> None:
    assert run_list([]) == "no runs\n"


def test_what_a_run_measured_stands_below_it() -> None:
    rows = [Row(id=SHORT, headline="rate 1,340.0 items/s"), Row(id="b", failed=1, benchmarks=3, host="node2")]
    lines = run_list(rows).splitlines()
    assert lines[2] == "   rate 1,340.0 items/s"
    assert "1/3 ✗" in lines[3]


def test_a_host_that_is_always_the_same_is_said_once() -> None:
    lines = run_list([Row(id="a"), Row(id="b")]).splitlines()
    assert "host" not in lines[0]
    assert lines[-1] == " In every row: host node1."


def test_columns_without_room_are_named() -> None:
    text = run_list([Row(id="a"), Row(id="b" * 20, host="a-host-of-a-very-long-name")], width=60)
    assert "no room here for: host" in text
    assert max(map(len, text.splitlines())) <= 60
