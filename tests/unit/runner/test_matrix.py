"""Several runs of one suite with other options: what they are called, and that all are made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from benchwright.cli.suites.matrix import command
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.run import Run
from benchwright.core.system import Multirun, MultirunEntry, System
from benchwright.kinds.suite.system_file import read_system
from benchwright.runner.matrix import MatrixObserver, MatrixRun, MatrixStatus, code_of, matrix_runs, run_matrix
from benchwright.runs.known_runs import all_runs
from benchwright.runs.run_folder import RunFolder

SYSTEM = """\
system:
  arch: cpu
multirun:
  runs:
    - name: "small{sizer.batch_size}.{time}"
      matrix: {sizer.batch_size: [2, 4]}
    - name: "large.{time}"
      matrix: {sizer.batch_size: 8, cpu.n_workers: 3}
"""
SUITE = """\
loop:
  inherits: _defaults
  definition: .
  plan: {method: njobs, n: 1}
  stop: {steps: 5}
  warmup: 1
  argv:
    --batch: auto_batch(1)
    --workers: "{n_worker}"
"""
MAIN = """\
import argparse, os
from benchprobe import iterate
parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int)
parser.add_argument("--workers", type=int)
options = parser.parse_args()
if os.path.exists(f"fail-{options.batch}"):
    raise SystemExit(7)
print("batch", options.batch, "workers", options.workers)
for _ in iterate("train", range(100), batch_size=options.batch):
    sum(range(1000))
"""


def entries(*given: tuple[str, dict[str, Any]]) -> Multirun:
    return Multirun(runs=tuple(MultirunEntry(name=name, matrix=matrix) for name, matrix in given))


def names(multirun: Multirun, system: System | None = None) -> list[str]:
    return [run.name for run in matrix_runs(multirun, system or System(), where="system.yaml")]


def test_values_are_combined_and_a_scalar_is_one_value():
    runs = matrix_runs(
        entries(("{cpu.n_workers}-{sizer.capacity}", {"cpu.n_workers": [8, 16], "sizer.auto": 1, "sizer.capacity": ["64Go", "All"]})),
        System(),
        where="x",
    )  # fmt: skip
    assert [run.name for run in runs] == ["8-64Go", "8-All", "16-64Go", "16-All"]
    assert runs[0].options == {"cpu.n_workers": 8, "sizer.auto": 1, "sizer.capacity": "64Go"}


def test_names_keep_the_time_for_later_and_hold_no_slashes():
    assert names(entries(("x{sizer.mult}.{time}", {"sizer.mult": [0.5, 2]}))) == ["x0.5.{time}", "x2.{time}"]
    assert names(entries(("{sizer.save}", {"sizer.save": "/a/b.yaml"}))) == ["_a_b.yaml"]
    assert names(entries(("{sizer.auto}", {"sizer.auto": True}))) == ["true"]


def test_a_name_may_use_an_option_of_the_system():
    system = System(options={"sizer": {"capacity": "80GiB"}})
    assert names(entries(("c{sizer.capacity}", {})), system) == ["c80GiB"]


def test_a_run_without_a_matrix_is_one_run():
    assert [run.options for run in matrix_runs(entries(("plain", {})), System(), where="x")] == [{}]


@pytest.mark.parametrize(
    ("multirun", "said"),
    [
        (Multirun(), "multirun.runs is empty"),
        (entries(("{sizer.capcity}", {"sizer.capacity": 1})), "did you mean 'sizer.capacity'"),
        (entries(("{when}", {})), "use time"),
        (entries(("x", {"sizer.add": [0, 8]})), "put {sizer.add} into the name"),
        (entries(("x", {}), ("x", {})), "give one of them another name"),
    ],
)
def test_what_cannot_be_named_is_refused(multirun, said):
    with pytest.raises(InvalidInput, match=said) as caught:
        names(multirun)
    assert caught.value.where == "system.yaml"


def test_the_real_system_file_has_thirteen_runs():
    real = Path(__file__).parents[4] / "shared" / "compat" / "milabench" / "config" / "examples" / "system.yaml"
    if not real.exists():
        pytest.skip("the shared files are not here")
    system, multirun = read_system(str(real))
    assert names(multirun, system) == [
        "bs0.5.{time}", "bs2.{time}", "bs-8.{time}", "bs0.{time}", "bs8.{time}", "bs16.{time}",
        "c64Go_m8_w8.{time}", "c128Go_m8_w8.{time}", "cAll_m8_w8.{time}",
        "c64Go_m8_w16.{time}", "c128Go_m8_w16.{time}", "cAll_m8_w16.{time}", "auto.{time}",
    ]  # fmt: skip


values = st.one_of(st.integers(-99, 99), st.booleans(), st.floats(0, 9), st.text("ab/{}", max_size=3))


@given(st.dictionaries(st.sampled_from(["sizer.auto", "sizer.add", "cpu.min"]), st.one_of(values, st.lists(values))))
def test_every_combination_is_made_exactly_once(matrix):
    try:
        runs = matrix_runs(entries(("".join(f"{{{key}}}" for key in matrix) or "x", matrix)), System(), where="x")
    except InvalidInput:
        return  # two of one name
    expected = 1
    for value in matrix.values():
        expected *= len(value) if isinstance(value, list) else 1
    assert len(runs) == expected
    for run in runs:
        assert run.options.keys() == matrix.keys()
        for key, value in matrix.items():
            assert run.options[key] in (value if isinstance(value, list) else [value])


RUNS = [MatrixRun(name=name, options={}) for name in "abc"]


def test_the_others_are_made_when_one_cannot_be():
    asked: list[str] = []

    def make(run: MatrixRun) -> Run:
        asked.append(run.name)
        raise CannotMeasure("no disk") if run.name != "b" else InvalidInput("wrong", where="suite.yaml")

    outcomes = run_matrix(RUNS, make)
    assert asked == ["a", "b", "c"]
    assert [(x.how, x.code, x.detail) for x in outcomes] == [
        (MatrixStatus.FAILED, 3, "no disk"), (MatrixStatus.FAILED, 2, "suite.yaml: wrong"), (MatrixStatus.FAILED, 3, "no disk"),
    ]  # fmt: skip
    assert code_of(outcomes) == 1
    assert code_of(outcomes[:1]) == 3


def test_an_interruption_ends_it():
    asked: list[str] = []

    def make(run: MatrixRun) -> Run:
        asked.append(run.name)
        raise Interrupted("interrupted; resume with: benchwright run --resume=a")

    with pytest.raises(Interrupted, match="--resume=a; continue the matrix with --resume"):
        run_matrix(RUNS, make)
    assert asked == ["a"]


def test_what_is_finished_is_left_out_and_said():
    told: list[str] = []

    class Telling(MatrixObserver):
        def on_begin(self, number, total, run):
            told.append(f"begin {number}/{total} {run.name}")

        def on_end(self, number, total, outcome):
            told.append(f"end {outcome.run.name} {outcome.how.value} {outcome.id}")

    def make(run: MatrixRun) -> Run:
        raise CannotMeasure("x")

    run_matrix(RUNS[:2], make, finished=lambda run: "a.1" if run.name == "a" else None, observer=Telling())
    assert told == ["end a skipped a.1", "begin 2/2 b", "end b failed None"]


@pytest.fixture
def matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`benchwright matrix` on a suite of one small loop."""
    for name in ("BENCHWRIGHT_SYSTEM", "BENCHWRIGHT_CONFIG", "MILABENCH_SYSTEM", "MILABENCH_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "main.py").write_text(MAIN)
    (tmp_path / "system.yaml").write_text(SYSTEM)

    def call(*more: str) -> Result:
        words = [
            str(tmp_path / "suite.yaml"),
            "--system",
            str(tmp_path / "system.yaml"),
            "--base",
            str(tmp_path / "base"),
        ]
        result = CliRunner().invoke(command, [*words, "--no-store", *more], standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        return result

    return call


def runs_in(tmp_path: Path) -> list[RunFolder]:
    return all_runs(tmp_path / "base" / "runs")[::-1]


def test_each_run_has_its_options_and_a_failed_one_does_not_end_the_others(matrix, tmp_path):
    (tmp_path / "fail-4").touch()
    result = matrix("--json")
    assert result.return_value == 1
    body = json.loads(result.stdout)["runs"]
    assert [(run["name"], run["status"], run["exit_code"]) for run in body] == [
        ("small2.{time}", "ok", 0), ("small4.{time}", "failed", 1), ("large.{time}", "ok", 0),
    ]  # fmt: skip
    assert body[1]["detail"] == "failed: loop"
    folders = runs_in(tmp_path)
    assert [folder.id for folder in folders] == [run["id"] for run in body]
    assert [folder.id.partition(".")[0] for folder in folders] == ["small2", "small4", "large"]
    started = [json.loads(line) for line in (folders[2].path / "loop.0.data").read_text().splitlines()]
    [argv] = [event["argv"] for event in started if event["event"] == "start"]
    assert argv[-4:] == ["--batch", "8", "--workers", "3"]
    assert folders[2].read_plan().labels == {"sizer.batch_size": "8", "cpu.n_workers": "3"}


def test_more_runs_than_anybody_can_mean_are_refused_before_they_are_made() -> None:
    matrix = {key: list(range(100)) for key in ("sizer.add", "sizer.power", "cpu.max", "cpu.min")}
    multirun = Multirun(runs=(MultirunEntry(name="x", matrix=matrix),))
    with pytest.raises(InvalidInput, match="describes 100000000 runs"):
        matrix_runs(multirun, System(), where="system.yaml")


def test_people_see_what_became_of_each_and_only_a_resume_leaves_out_what_is_there(matrix, tmp_path):
    lines = matrix().stdout.splitlines()
    first, second, third = runs_in(tmp_path)
    assert lines[0].split() == ["small2.{time}", "ok", first.id]
    assert lines[-1] == f"compare them: benchwright report {first.id} {second.id} {third.id}"
    resume_makes_only_what_is_missing(matrix, tmp_path, first, second, third)
    runs_of_a_suite_that_has_changed_are_not_taken_for_its_own(matrix, tmp_path, first, second, third)
    before = len(runs_in(tmp_path))
    matrix()
    assert len(runs_in(tmp_path)) == before + 3


def resume_makes_only_what_is_missing(matrix, tmp_path, first, second, third):
    (second.path / "run.json").unlink()  # as if it had been killed
    streams = {folder.id: (folder.path / "loop.0.data").stat().st_mtime_ns for folder in (first, second, third)}
    (second.path / "loop.0.data").write_text("")
    body = json.loads(matrix("--resume", "--json").stdout)["runs"]
    assert [(run["status"], run["id"]) for run in body] == [
        ("skipped", first.id), ("ok", second.id), ("skipped", third.id),
    ]  # fmt: skip
    assert len(runs_in(tmp_path)) == 3
    assert (first.path / "loop.0.data").stat().st_mtime_ns == streams[first.id]
    assert '"end"' in (second.path / "loop.0.data").read_text()


def runs_of_a_suite_that_has_changed_are_not_taken_for_its_own(matrix, tmp_path, first, second, third):
    (second.path / "run.json").unlink()
    (tmp_path / "suite.yaml").write_text(SUITE.replace("steps: 5", "steps: 6"))
    body = json.loads(matrix("--resume", "--json").stdout)["runs"]
    assert [(run["status"], run["exit_code"]) for run in body] == [("ok", 0), ("failed", 2), ("ok", 0)]
    assert f"{second.id} is unfinished and differs: loop: stop: steps was 5, is 6" in body[1]["detail"]
    assert {body[0]["id"], body[2]["id"]}.isdisjoint({first.id, third.id})


TWO_RUNS = SYSTEM.replace("[2, 4]", "[2]")


def test_what_each_run_saw_of_memory_is_saved(matrix, tmp_path):
    (tmp_path / "system.yaml").write_text(TWO_RUNS)
    file = tmp_path / "scaling.yaml"
    result = matrix("--save-scaling", str(file))
    assert [one["batch_size"] for one in yaml.safe_load(file.read_text())["loop"]["observations"]] == [2, 8]
    assert result.stderr.count(f"benchwright: 1 observation added to {file}\n") == 2


def test_a_run_saves_where_its_own_options_say(matrix, tmp_path):
    file = tmp_path / "scaling.yaml"
    (tmp_path / "system.yaml").write_text(TWO_RUNS.replace("batch_size: 8,", f"batch_size: 8, sizer.save: {file},"))
    matrix()
    assert [one["batch_size"] for one in yaml.safe_load(file.read_text())["loop"]["observations"]] == [8]


def test_a_file_that_cannot_be_added_to_ends_nothing(matrix, tmp_path):
    file = tmp_path / "scaling.yaml"
    file.write_text("[no, scaling, file]")
    (tmp_path / "system.yaml").write_text(TWO_RUNS)
    result = matrix("--save-scaling", str(file))
    assert (result.return_value, len(runs_in(tmp_path))) == (0, 2)
    assert result.stderr.count("is complete, but its batch sizes could not be saved: ") == 2
    assert file.read_text() == "[no, scaling, file]"


def test_a_list_runs_nothing(matrix, tmp_path):
    listed = matrix("--list").stdout
    assert listed.splitlines() == [
        "small2.{time}  sizer.batch_size=2",
        "small4.{time}  sizer.batch_size=4",
        "large.{time}   sizer.batch_size=8 cpu.n_workers=3",
    ]
    assert json.loads(matrix("--list", "--json").stdout)["runs"][2] == {
        "name": "large.{time}", "options": {"sizer.batch_size": 8, "cpu.n_workers": 3},
    }  # fmt: skip
    assert not (tmp_path / "base").exists()


def test_a_system_file_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCHWRIGHT_SYSTEM", raising=False)
    monkeypatch.delenv("MILABENCH_SYSTEM", raising=False)
    result = CliRunner().invoke(command, ["suite.yaml"], standalone_mode=False)
    assert isinstance(result.exception, InvalidInput)
    assert "no system file is named" in str(result.exception)
