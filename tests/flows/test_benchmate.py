"""Folders that use benchmate, from install to score, with the package that lies beside the benchmarks."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import CommandLine
from local_wheels import offline, repack

from benchwright.analysis.summary import launch_value
from benchwright.kinds.registry import kind_of
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

pytestmark = pytest.mark.compat

SUITE = Path(__file__).parents[1] / "compat" / "benchmate_suite"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    repack(folder, "voir")
    return folder


@pytest.fixture
def suite(bw: CommandLine, packages: Path, tmp_path: Path) -> Path:
    for name in [name for name in bw.env if name.startswith(("PIP_", "UV_"))]:
        del bw.env[name]
    bw.env |= offline(packages, tmp_path / "uv-cache")
    return Path(shutil.copytree(SUITE, tmp_path / "suite"))


def test_from_install_to_score(bw: CommandLine, suite: Path) -> None:
    config = str(suite / "config" / "suite.yaml")
    (group,) = bw.json("install", config)["groups"]
    assert group["status"] == "built"
    assert group["packages"]["benchmate"].startswith("0+local.")
    assert any("requirements lack voir" in note for note in group["notes"])
    assert (bw.base / "venv" / "squares" / "bin" / "benchrun").exists()
    assert bw.json("install", config)["groups"][0]["status"] == "reused"
    assert [one["status"] for one in bw.json("prepare", config)["benchmarks"]] == ["prepared", "prepared"]
    plan = bw.json("plan", config)["benchmarks"]
    under_voir, hidden = (one["jobs"][0]["argv"] for one in plan)
    assert under_voir[1:3] == ["-m", "voir"]
    assert under_voir[5:7] == ["-m", "squares"]
    assert hidden[1:3] == ["-m", "squares"]
    bw("run", config)
    results = read_run(RunFolder(Path(bw.last_run())), kind_of).results
    assert [(one.benchmark.name, one.status.value) for one in results] == [("squares", "ok"), ("squares-hidden", "ok")]
    for result, count, size in zip(results, (6, 9), (5, 7), strict=True):
        (launch,) = result.launches
        rate, loss = launch.measurement("rate"), launch.measurement("loss")
        assert len(rate.samples) == count, "another number of observations than asked for"
        assert 0 < launch_value(rate) <= size / 0.02
        assert loss.samples[:3] == tuple(first + (size - 1) / 2 for first in (0, size, 2 * size))
    ran = json.loads((bw.base / "data" / "ran-7").read_text())
    assert int(ran["OMP_NUM_THREADS"]) >= 1, "milabench's make_env gives it"
    assert ran["PYTHONPATH"] is None or "benchmate" not in ran["PYTHONPATH"]
    report = bw("report", "--score", "milabench").stdout
    assert "Failure rate: 0.00% (PASS)" in report


def test_the_suites_own_package_is_installed_and_a_change_of_it_is_seen(bw: CommandLine, suite: Path) -> None:
    config = str(suite / "config" / "suite.yaml")
    own = suite / "benchmate"
    project = (
        '[tool.poetry]\nname = "benchmate"\nversion = "0.1.0"\n[tool.poetry.dependencies]\npython = ">=3.8,<4.0"\n'
    )
    (own / "pyproject.toml").write_text(f'{project}[tool.poetry.scripts]\nbenchrun = "benchmate.benchrun:main"\n')
    (group,) = bw.json("install", config)["groups"]
    assert group["packages"]["benchmate"].startswith("0.1.0+local.")
    (own / "benchmate" / "extra.py").write_text("x = 1\n")
    refused = bw("run", config, "--no-setup", code=None)
    assert "its requirements changed since it was installed" in refused.stdout + refused.stderr
    assert bw.json("install", config)["groups"][0]["status"] == "built"
    python = bw.base / "venv" / "squares" / "bin" / "python"
    assert subprocess.run([python, "-c", "import benchmate.extra"]).returncode == 0


def test_without_the_package_it_is_refused_with_the_places_where_it_was_sought(bw: CommandLine, suite: Path) -> None:
    shutil.rmtree(suite / "benchmate")
    config = str(suite / "config" / "suite.yaml")
    refused = bw("run", config, code=2).stderr
    assert f"neither in {suite / 'benchmate'} nor in {suite.parent / 'benchmate'}" in refused
    assert "copy the folder benchmate of milabench's repository" in refused
