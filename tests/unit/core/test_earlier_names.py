"""Run folders and stores of earlier versions are read under today's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchwright.core.artifact import Artifact
from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Environment, Runner, Script
from benchwright.core.earlier_names import renamed_run
from benchwright.core.job import Job
from benchwright.core.model import Model
from benchwright.core.run import Launch, Plan
from benchwright.core.system import SuitePaths
from benchwright.kinds.spec.spec_test import SpecTest, with_spec
from benchwright.options.table import Options
from benchwright.record.stream_file import read_events
from benchwright.runs.run_folder import RunFolder
from benchwright.runs.stored_plan import StoredJobs, StoredPlan, decoded_plan

FOLDER = BenchmarkFolder(
    path="/suite/b", group="g", runner=Runner(name="voir", dialect="milabench", settings={"options": {"stop": 3}})
)
BENCHMARK = Benchmark(
    name="b",
    workload=Script(path="/suite/b/main.py", args=(), cwd="/suite/b", python=""),
    source="s.yaml:1 [b]",
    environment=Environment(name="torch", folder="/suite/b", packages=("voir",), variant="cuda", pip_args=("--pre",)),
    folder=FOLDER,
)
PATHS = SuitePaths(base="/base", data="/d", extra="/e", cache="/c", venv="/v", runs="/r")


def as_before(benchmark: Benchmark) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.to_builtins(benchmark)
    folder, environment = body.pop("folder"), body.pop("environment")
    folder["voir"] = folder.pop("runner")["settings"]
    moved = {key: environment[key] for key in ("variant", "requirements", "constraints", "pip_args")}
    pack = {"definition": folder.pop("path"), "install_group": environment["name"], **moved, **folder}
    return {**body, "pack": pack}


@pytest.mark.compat
def test_a_plan_of_an_earlier_version_is_read_whole(tmp_path: Path) -> None:
    plan = StoredPlan(
        name="r", started="2026-11-01T00:00:00", benchmarks=(BENCHMARK,), options=Options(suite_paths=PATHS)
    )
    body = msgspec.to_builtins(plan)
    body["benchmarks"] = [as_before(BENCHMARK)]
    body["settings"] = {"surroundings": body.pop("options")["suite_paths"], "echo": False, "repeat": 1}
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(body))
    assert RunFolder(tmp_path).read_plan() == plan


@pytest.mark.compat
def test_a_stored_run_of_an_earlier_version_keeps_its_folder() -> None:
    (result,) = renamed_run({"results": [{"benchmark": as_before(BENCHMARK)}]})["results"]
    assert msgspec.convert(result["benchmark"], Benchmark) == BENCHMARK


def test_the_number_of_a_launch_was_called_repeat(tmp_path: Path) -> None:
    """In runs of the store and of exported files, and in jobs.json of run folders."""
    launches = [{"job": "b.R1", "status": "ok", "repeat": 1}, {"job": "b.R2", "status": "ok", "launch": 2}]
    (result,) = renamed_run({"results": [{"launches": launches}]})["results"]
    assert [msgspec.convert(each, Launch).launch for each in result["launches"]] == [1, 2]
    jobs: dict[str, Any] = {"launches": [[{"id": "b.R1", "benchmark": "b", "repeat": 1}]]}
    (tmp_path / "jobs.json").write_bytes(msgspec.json.encode(jobs))
    stored = RunFolder(tmp_path).read_jobs()
    assert stored is not None
    ((job,),) = stored.plan((), str(tmp_path)).launches
    assert job.launch == 1
    assert b"repeat" not in msgspec.json.encode(StoredJobs.of(stored.plan((), str(tmp_path))))


@pytest.mark.compat
def test_what_was_the_only_runner_has_a_name_now() -> None:
    body: dict[str, Any] = msgspec.to_builtins(BENCHMARK)
    body["folder"]["voir"] = body["folder"].pop("runner")["settings"]
    (result,) = renamed_run({"results": [{"benchmark": body}]})["results"]
    assert msgspec.convert(result["benchmark"], Benchmark) == BENCHMARK
    body["folder"]["voir"] = None
    (result,) = renamed_run({"results": [{"benchmark": body}]})["results"]
    assert msgspec.convert(result["benchmark"], Benchmark).folder == msgspec.structs.replace(FOLDER, runner=None)


def test_a_model_of_an_earlier_version_is_built_as_it_was(tmp_path: Path) -> None:
    work = Model(
        runtime="onnxruntime", python="py", cwd="/", identity="ab", sequence_file="/x/int8.py", build_timeout=7.0
    )
    benchmark = Benchmark(name="m", workload=work, source="m.py")
    plan = StoredPlan(name="r", started="2026-11-01T00:00:00", benchmarks=(benchmark,), options=Options())
    body = msgspec.to_builtins(plan)
    before = body["benchmarks"][0]["workload"]
    before |= {"sequence": before.pop("sequence_file"), "step_timeout_s": before.pop("build_timeout")}
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(body))
    assert RunFolder(tmp_path).read_plan() == plan
    (result,) = renamed_run({"results": [{"benchmark": body["benchmarks"][0]}]})["results"]
    assert msgspec.convert(result["benchmark"], Benchmark) == benchmark


def test_a_test_of_an_earlier_version_is_its_kinds_data() -> None:
    test = SpecTest(path="/s.json", line=3, model="net", identifier="a", files=(Artifact(key="net", filename="n.pb"),))
    benchmark = with_spec(Benchmark(name="t", kind="spec", workload=BENCHMARK.workload, source="s.json:3"), test)
    body = msgspec.to_builtins(benchmark)
    before = body.pop("data")
    for file in before["files"]:
        file["key"] = file.pop("name")
    plan = StoredPlan(name="r", started="2026-11-01T00:00:00", benchmarks=(benchmark,), options=Options())
    written = msgspec.to_builtins(plan) | {"benchmarks": [{**body, "spec": before}]}
    assert decoded_plan(msgspec.json.encode(written)) == plan


def test_what_is_no_run_is_left_for_the_reader_to_refuse() -> None:
    for body in (None, 3, {"results": 3}, {"results": [3, {"benchmark": 3}]}, {"results": [{"benchmark": {}}]}):
        assert renamed_run(body) == body


@pytest.mark.compat
def test_what_voir_reported_is_found_in_earlier_streams_and_runs(tmp_path: Path) -> None:
    stream = tmp_path / "b.data"
    stream.write_text('{"event": "voir", "n": 2, "t": 5, "lines": ["{}"]}\n{"event": "voir", "n": 3, "t": 5}\n')
    assert list(read_events(stream)) == [
        {"event": "reported", "dialect": "voir", "n": 2, "t": 5, "lines": ["{}"]},
        {"event": "unreadable"},
    ]
    launch = {"facts": {"started": True, "voir": {"early_stop": True}}}
    (result,) = renamed_run({"results": [{"launches": [launch, {"facts": {"voir": None}}]}]})["results"]
    assert result["launches"] == [
        {"facts": {"started": True, "reported": {"dialect": "voir", "early_stop": True}}},
        {"facts": {}},
    ]


@pytest.mark.compat
def test_an_earlier_job_that_was_given_a_descriptor_speaks_the_dialect_of_then() -> None:
    job = Job(id="b", benchmark="b", argv=("x",), cwd="/", stream="/r/b.data", log="/r/b.log", env={"DATA_FD": "3"})
    for dialect, read in ((None, "voir"), ("key-value", "key-value")):
        planned = Plan(benchmarks=(), launches=((msgspec.structs.replace(job, dialect=dialect),),))
        stored = msgspec.json.decode(msgspec.json.encode(StoredJobs.of(planned)), type=StoredJobs)
        assert stored.plan((), "/r").launches[0][0].dialect == read
    plain = Plan(benchmarks=(), launches=((msgspec.structs.replace(job, env={}),),))
    assert StoredJobs.of(plain).plan((), "/r").launches[0][0].dialect is None
