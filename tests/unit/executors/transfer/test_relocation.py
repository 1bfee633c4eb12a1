"""Paths of this machine in a job become those of the other one, and nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

from builders import job as job_in
from hypothesis import given
from hypothesis import strategies as st

from benchwright.executors.transfer.needs import needs_of
from benchwright.executors.transfer.relocation import Relocation

PLACES = {"/home/me/base": "/far/base", "/home/me/base/data": "/far/data", "/home/me/bench": "/far/bench"}


def test_the_longest_path_counts():
    there = Relocation(PLACES).there
    assert there("/home/me/base/data/set") == "/far/data/set"
    assert there("/home/me/base/datasets") == "/far/base/datasets"
    assert there("/home/me/base") == "/far/base"
    assert there("/home/me/baseline") == "/home/me/baseline"
    assert there("/home/me/bench.old") == "/home/me/bench.old"


def test_paths_inside_words_are_found():
    there = Relocation(PLACES).there
    assert there("--data=/home/me/base/data") == "--data=/far/data"
    assert there("-I/home/me/bench/include") == "-I/far/bench/include"
    assert there("/home/me/base:/home/me/bench") == "/far/base:/far/bench"
    assert there('{"data": "/home/me/base/data"}') == '{"data": "/far/data"}'


def test_nothing_is_replaced_twice():
    assert Relocation({"/a": "/b/a", "/b": "/c"}).there("/a/x") == "/b/a/x"


def test_without_places_nothing_changes():
    assert Relocation({}).there("/anything") == "/anything"


def test_every_path_of_a_job_moves():
    job = job_in(
        "/home/me/bench/prog", folder=Path("/home/me/base/run"), cwd="/home/me/bench",
        env={"DATA": "/home/me/base/data", "GONE": None}, path=("/home/me/bench/bin",), probe_path="/home/me/base/probe",
        files={"/home/me/base/run/x.json": '{"d": "/home/me/base/data"}'}, folders=("/home/me/base/extra",),
        data_file="/home/me/base/run/x.voir", fetch=("/home/me/bench/out",),
    )  # fmt: skip
    moved = Relocation(PLACES).job(job)
    assert "/home/me" not in repr(moved)
    assert moved.env == {"DATA": "/far/data", "GONE": None}
    assert moved.files == {"/far/base/run/x.json": '{"d": "/far/data"}'}


@given(st.text())
def test_any_other_text_stays_as_it_is(text):
    if "/home/me" not in text:
        assert Relocation(PLACES).there(text) == text


def test_what_a_job_names_is_needed(tmp_path):
    bench, data, run = tmp_path / "bench", tmp_path / "base" / "data", tmp_path / "base" / "runs" / "r"
    for folder in (bench / "sub", data, run):
        folder.mkdir(parents=True)
    (tmp_path / "prog").write_text("")
    job = job_in(
        str(tmp_path / "prog"), f"--data={data}", str(bench / "sub"), "/usr/bin/env", "/no/such/thing",
        folder=run, cwd=str(bench), env={"BASE": str(tmp_path / "base"), "HOME": os.path.expanduser("~")},
    )  # fmt: skip
    needs = needs_of([job], made={str(run)}, anchors={str(tmp_path / "base")})
    assert sorted(needs.trees) == sorted(map(str, (bench, data, tmp_path / "prog")))
    assert needs.environments == needs.pythons == needs.notes == ()


def test_the_base_folder_is_sent_in_parts_even_if_a_job_runs_in_it(tmp_path):
    base = tmp_path / "base"
    (base / "data").mkdir(parents=True)
    (base / "runs" / "r").mkdir(parents=True)
    job = job_in("true", folder=base / "runs" / "r", cwd=str(base), env={"DATA": str(base / "data")})
    needs = needs_of([job], {str(base / "runs" / "r")}, {str(base)}, {str(base / "data"), str(base / "runs")})
    assert sorted(needs.trees) == [str(base), str(base / "data")]


def test_a_home_folder_is_never_sent(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    needs = needs_of([job_in("true", folder=tmp_path / "run", cwd=str(tmp_path))])
    assert needs.trees == ()
    assert "is not sent" in needs.notes[0]


def test_a_script_brings_its_folder_and_an_interpreter_its_environment(tmp_path):
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("")
    (tmp_path / "venv" / "bin" / "python").symlink_to("/bin/sh")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "main.py").write_text("")
    (tmp_path / "cwd").mkdir()
    job = job_in(
        str(tmp_path / "venv" / "bin" / "python"), str(tmp_path / "code" / "main.py"),
        folder=tmp_path / "run", cwd=str(tmp_path / "cwd"),
    )  # fmt: skip
    needs = needs_of([job])
    assert needs.environments == (str(tmp_path / "venv"),)
    assert set(needs.trees) == {str(tmp_path / "code"), str(tmp_path / "cwd")}
