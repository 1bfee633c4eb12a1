"""The suites that come with benchwright: they are found by name, hold together, and run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from command_line import CommandLine

from benchwright.sources.shipped import shipped_suite, shipped_suites
from benchwright.sources.suite import read_suite

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["--override", "*.argv.--size=tiny", "--stop", "2", "--warmup", "1", "--no-store"]


def test_every_suite_is_found_by_name_and_holds_together() -> None:
    assert set(shipped_suites()) == {"quick", "cpu", "standard", "inference", "system"}
    for name, path in shipped_suites().items():
        assert shipped_suite(f"suites/{name}.yaml") == path
        suite = read_suite(path)
        assert suite.selected, name
        for entry in suite.selected:
            assert (Path(suite.entries[entry]["definition"]) / "main.py").is_file(), (name, entry)


def test_every_benchmark_is_in_a_suite_and_says_what_it_is() -> None:
    used = {
        Path(entry["definition"]).name
        for path in shipped_suites().values()
        for entry in read_suite(path).entries.values()
        if entry.get("enabled")
    }
    folders = {p.name for p in (ROOT / "benchmarks").iterdir() if p.is_dir() and not p.name.startswith(("_", "."))}
    assert folders == used
    for folder in folders:
        for file in ("README.md", "requirements.in", "main.py"):
            assert (ROOT / "benchmarks" / folder / file).is_file(), (folder, file)


def run_at_tiny(bw: CommandLine, suite: str, *more: str) -> dict[str, str]:
    environment = {"OMP_NUM_THREADS": "1", "VIRTUAL_ENV": os.fspath(Path(sys.prefix))}
    small = ["--override", "*.argv.--size=tiny", *more]
    bw("prepare", suite, "--use-current-env", *small, env=environment, timeout=300)
    done = bw("run", suite, "--use-current-env", *SMALL, "--json", *more, env=environment, timeout=500, code=None)
    results = json.loads(done.stdout)["results"]
    failed = [(r["benchmark"], r["reason"], r["detail"]) for r in results if r["status"] == "failed"]
    assert done.returncode == 0, failed
    return {r["benchmark"]: r["status"] for r in results}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", ["training", "inference,system"])
def test_all_of_standard_runs_at_tiny(bw: CommandLine, part: str) -> None:
    statuses = run_at_tiny(bw, "standard", "--select", part, "--exclude", "compile")
    skipped = {name for name, status in statuses.items() if status == "skipped"}
    assert all(name.endswith("-gpus") for name in skipped)  # this machine has no two GPUs
    assert {status for name, status in statuses.items() if name not in skipped} == {"ok"}
