"""Run folders and stores of earlier versions are read under today's names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Environment, Script
from benchwright.core.files.earlier_names import renamed_run
from benchwright.core.model import Model
from benchwright.core.node.system import SuitePaths
from benchwright.options.table import Options
from benchwright.runs.run_folder import RunFolder
from benchwright.runs.stored_plan import StoredPlan

FOLDER = BenchmarkFolder(path="/suite/b", group="g", voir={"options": {"stop": 3}})
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
    moved = {key: environment[key] for key in ("variant", "requirements", "constraints", "pip_args")}
    pack = {"definition": folder.pop("path"), "install_group": environment["name"], **moved, **folder}
    return {**body, "pack": pack}


def test_a_plan_of_an_earlier_version_is_read_whole(tmp_path: Path) -> None:
    plan = StoredPlan(
        name="r", started="2026-11-01T00:00:00", benchmarks=(BENCHMARK,), options=Options(suite_paths=PATHS)
    )
    body = msgspec.to_builtins(plan)
    body["benchmarks"] = [as_before(BENCHMARK)]
    body["settings"] = {"surroundings": body.pop("options")["suite_paths"], "echo": False, "repeat": 1}
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(body))
    assert RunFolder(tmp_path).read_plan() == plan


def test_a_stored_run_of_an_earlier_version_keeps_its_folder() -> None:
    (result,) = renamed_run({"results": [{"benchmark": as_before(BENCHMARK)}]})["results"]
    assert msgspec.convert(result["benchmark"], Benchmark) == BENCHMARK


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


def test_what_is_no_run_is_left_for_the_reader_to_refuse() -> None:
    for body in (None, 3, {"results": 3}, {"results": [3, {"benchmark": 3}]}, {"results": [{"benchmark": {}}]}):
        assert renamed_run(body) == body
