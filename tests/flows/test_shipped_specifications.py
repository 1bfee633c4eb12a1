"""The specifications that come with benchwright: they are found by name, hold together, and run."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from benchwright.kinds.spec.read.shipped import shipped_specification, shipped_specifications
from benchwright.kinds.suite.shipped import shipped_suites

ROOT = Path(__file__).resolve().parents[2]
NAMES = {
    *("matrix", "addition", "mlp_onnx", "mlp_torch_export", "mlp_openvino"),
    *("small_models", "examples"),
}
RUNTIMES = {"mlp_onnx": "onnxruntime", "mlp_torch_export": "torch-eager", "mlp_openvino": "openvino"}


def body(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(shipped_specifications()[name]).read_text())
    return found


def test_every_specification_is_found_by_name_and_by_path() -> None:
    assert set(shipped_specifications()) == NAMES
    assert not NAMES & set(shipped_suites())
    assert all(shutil.which(name) is None for name in NAMES), "a name that is a program would need its path"
    for name, path in shipped_specifications().items():
        assert shipped_specification(name) == shipped_specification(f"{name}.json") == path
        below = Path(path).parts[Path(path).parts.index("specifications") :]
        assert shipped_specification("/".join(below)) == path
    assert shipped_specification("specifications/../pyproject.toml") is None
    assert shipped_specification("other/matrix") is None


def test_the_files_are_small_and_have_their_checksums() -> None:
    for name in NAMES - {"small_models", "examples"}:
        folder = Path(shipped_specifications()[name]).parent
        groups = [body(name)["model"]["files"]]
        groups += [test.get(key, {}) for test in body(name)["tests"] for key in ("input_files", "golden_files")]
        for file in (file for group in groups for file in group.values()):
            content = (folder / file["location"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file["sha256"], (name, file)
            assert len(content) < 20_000, file


def test_all_of_them_are_valid(bw: CommandLine) -> None:
    said = bw("validate", *sorted(NAMES)).stdout.splitlines()
    assert len([line for line in said if ": ok, " in line]) == len(NAMES), said


def test_a_misspelt_name_is_offered(bw: CommandLine) -> None:
    assert "did you mean 'matrix'?" in bw("run", "matrxi", code=2).stderr


@pytest.mark.compat
def test_the_program_that_prints_an_observers_lines(bw: CommandLine, tmp_path: Path) -> None:
    done = bw.json("run", "matrix", "--local-reporter", str(tmp_path / "reports"))
    assert [result["status"] for result in done["results"]] == ["ok", "ok"]
    records = sorted(path.name for path in (tmp_path / "reports").rglob("*.txt"))
    assert records == sorted(["meta.txt", "NET-latency.txt", "multiply-latency.txt", "transpose-latency.txt"] * 2)
    for path in (tmp_path / "reports").rglob("NET-latency.txt"):
        assert len(json.loads(path.read_text())["values"]) == 20


GOLDEN = [
    ("mlp_onnx", ("golden",)),
    pytest.param("mlp_onnx", ("0", "1", "golden"), marks=pytest.mark.long),
    pytest.param("mlp_openvino", ("0", "1", "golden"), marks=pytest.mark.long),
    pytest.param("mlp_torch_export", ("golden",), marks=pytest.mark.long),  # to import torch takes seconds each time
]


@pytest.mark.parametrize(("name", "tests"), GOLDEN)
def test_a_model_runs_and_gives_the_golden_output(bw: CommandLine, name: str, tests: tuple[str, ...]) -> None:
    module = {"onnxruntime": "onnxruntime", "torch-eager": "torch", "openvino": "openvino"}[RUNTIMES[name]]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    chosen = [word for test in tests for word in ("--task", f"{name}-{test}")]
    done = bw.json("run", name, *chosen, "--python", sys.executable)
    found = {result["benchmark"]: result for result in done["results"]}
    assert set(found) == {f"{name}-{test}@{RUNTIMES[name]}" for test in tests}
    assert {result["status"] for result in found.values()} == {"ok"}, found


def test_a_list_names_what_it_runs(bw: CommandLine) -> None:
    plan = json.loads(bw("plan", "examples", "--json").stdout)
    models = {each["name"].partition("@")[0].rpartition("-")[0] for each in plan["benchmarks"]}
    assert models == {"matrix", *RUNTIMES}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_the_framework_is_built_and_its_program_measured(bw: CommandLine, tmp_path: Path) -> None:
    framework = ROOT / "specifications" / "frameworks" / "example"
    build = ["sh", str(framework / "build.sh"), str(framework / "source"), str(tmp_path / "built")]
    subprocess.run(build, check=True)
    done = bw.json("run", "addition", "--program", str(tmp_path / "built" / "benchmark"))
    (result,) = done["results"]
    assert result["status"] == "ok"
    refused = subprocess.run(build[:2], capture_output=True, text=True, env={**os.environ}, check=False)
    assert refused.returncode == 2
    assert "usage" in refused.stderr
