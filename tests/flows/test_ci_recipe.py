"""docs/how-to/ci.md: the commands of both recipes, run as their runners run them, in a clone of a small repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from small_repository import SmallRepository

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "ci.md").read_text(encoding="utf-8")
RECIPES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
GITHUB = next(r for r in RECIPES if "jobs" in r)
GITLAB = next(r for r in RECIPES if "speed" in r)
PACKAGE = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "spin"\nversion = "1"\n[tool.setuptools]\npy-modules = ["spin"]\n'
SPIN = "import time\ndef spin():\n    end = time.process_time() + {}\n    while time.process_time() < end: pass\n"
# What the forge would do with a comment: told by its arguments, and whether there is one already.
FORGE = """#!/bin/sh
echo "$@" >> "$FORGE/calls"
case "$*" in
  *--jq*startswith*) cat "$FORGE/known" 2>/dev/null || true ;;
  *body=*comment.md*) cp comment.md "$FORGE/comment.md"; echo 42 > "$FORGE/known" ;;
esac
"""


class Runner:
    """A clone of a pull request's branch, and a shell for steps."""

    def __init__(self, folder: Path, origin: Path, env: dict[str, str]) -> None:
        self.clone, self.forge = folder / "clone", folder / "forge"
        subprocess.run(["git", "clone", "-q", str(origin), str(self.clone)], check=True)
        tools = folder / "tools"
        tools.mkdir()
        self.forge.mkdir()
        for name in ("gh", "curl"):
            (tools / name).write_text(FORGE)
            (tools / name).chmod(0o755)
        path = os.pathsep.join([str(tools), os.path.dirname(sys.executable), os.environ["PATH"]])
        own = {"PATH": path, "FORGE": str(self.forge), "BENCHWRIGHT_BASE": str(folder / "base")}
        # Nothing is fetched: the package is built with the tools that are here.
        self.env = {**os.environ, **own, "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_INDEX": "1", **env}

    def run(self, script: str, **env: str) -> int:
        script = script.replace("--budget 10m", "--repeat 6 --metric process.cpu_time")  # whatever else runs here
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(shell, cwd=self.clone, env={**self.env, **env}, timeout=800).returncode

    @property
    def calls(self) -> list[str]:
        return (self.forge / "calls").read_text().splitlines()


@pytest.fixture
def origin(tmp_path: Path) -> SmallRepository:
    """`main`, and the branch of a pull request that makes the package slower."""
    made = SmallRepository(tmp_path / "origin")
    files = {"pyproject.toml": PACKAGE, "spin.py": SPIN.format("0.02"), "bench.py": "import spin\nspin.spin()\n"}
    made.commit("First", files)
    made.git("checkout", "-q", "-b", "change")
    made.commit("Slower", {"spin.py": SPIN.format("0.2")})
    return made


@pytest.mark.long
def test_the_recipe_for_github(tmp_path: Path, origin: SmallRepository) -> None:
    summary = tmp_path / "summary.md"
    variables = {
        "GITHUB_BASE_REF": "main",
        "GITHUB_REPOSITORY": "o/r",
        "GITHUB_STEP_SUMMARY": str(summary),
        "PULL": "7",
    }
    runner = Runner(tmp_path, origin.folder, {**variables, "GITHUB_ACTIONS": "true"})
    steps = {step.get("name", ""): step["run"] for step in GITHUB["jobs"]["speed"]["steps"] if "run" in step}
    assert runner.run(steps["Measure"]) == 1
    assert "regressed" in (runner.clone / "junit.xml").read_text()
    assert (runner.clone / "comparison.html").stat().st_size > 10_000
    for _ in range(2):  # the second push finds the comment
        assert runner.run(steps["Comment"]) == 0
    assert [call.split()[:3] for call in runner.calls if "body=" in call] == [
        ["api", "-X", "POST"],
        ["api", "-X", "PATCH"],
    ]
    assert "issues/comments/42" in runner.calls[-1]
    marker = (runner.clone / "comment.md").read_text().splitlines()[0]
    assert all(marker in call for call in runner.calls if "--jq" in call)
    assert "**regressed** `bench.py`" in (runner.forge / "comment.md").read_text()
    assert summary.read_text().startswith(marker)


def test_the_recipe_for_gitlab(tmp_path: Path, origin: SmallRepository) -> None:
    origin.git("checkout", "-q", "main")
    base = origin.git("rev-parse", "main")
    runner = Runner(
        tmp_path, origin.folder, {"CI_MERGE_REQUEST_DIFF_BASE_SHA": base, "BENCH_TOKEN": "secret", "CI_PROJECT_ID": "1"}
    )
    job = GITLAB["speed"]
    assert runner.run(job["script"][0], BENCHWRIGHT=str(ROOT), PIP_DRY_RUN="1", PIP_NO_DEPS="1") == 0
    assert "${{ vars.BENCHWRIGHT }}" in GITHUB["jobs"]["speed"]["steps"][2]["run"]
    assert runner.run("\n".join(job["script"][1:])) == 0  # the branch is main itself: nothing to find
    for line in job["after_script"]:
        assert runner.run(line, CI_API_V4_URL="https://gitlab.test/api/v4", CI_MERGE_REQUEST_IID="3") == 0
    assert runner.calls[-1].endswith("https://gitlab.test/api/v4/projects/1/merge_requests/3/notes")
    assert "### Benchmarks" in (runner.forge / "comment.md").read_text()
    assert (runner.clone / "junit.xml").exists()
    assert "failure" not in (runner.clone / "junit.xml").read_text().replace('failures="0"', "")
