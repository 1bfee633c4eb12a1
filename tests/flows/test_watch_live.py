"""A real slow-down in a small repository is watched, caught, verified and bisected; without one nothing is raised."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from small_repository import SmallRepository

# CPU time, since others use this machine too; a step takes as long as the file says.
PROGRAM = """
import time
import work
began = time.process_time()
for _ in range(40):
    work.step()
print(f"cpu={time.process_time() - began}")
"""
WORK = "def step():\n    return sum(i * i for i in range({count}))\n"
METRIC = "cpu[s,lower]=kv:cpu"


def repository(folder: Path, *counts: int) -> tuple[SmallRepository, list[str]]:
    """A commit for each number of steps."""
    small = SmallRepository(folder / "project")
    files = {"bench.py": PROGRAM}
    return small, [
        small.commit(f"commit {number}", {**files, "work.py": WORK.format(count=count), "other": str(number)})
        for number, count in enumerate(counts)
    ]


def watch(bw: CommandLine, small: SmallRepository, first: str, code: int) -> list[dict[str, Any]]:
    words = ("--repo-dir", str(small.folder), "--commit", first, "--repeat", "8", "--min-effect", "10%", "--json")
    done = bw("watch", *words, "--metric", METRIC, "--", "python", "bench.py", code=code)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_a_slow_down_is_watched_caught_verified_and_bisected_to_its_commit(tmp_path: Path, bw: CommandLine) -> None:
    small, commits = repository(tmp_path, 3000, 3000, 6000, 6000)
    records = watch(bw, small, commits[1], code=1)
    assert [record["commit"] for record in records] == commits[1:]
    assert records[0]["outcome"] not in ("regressed", "broken", "build failed")
    slow, after = records[1], records[2]
    assert (slow["outcome"], slow["control"]) == ("regressed", commits[0])
    assert [made["run_type"] for made in slow["runs"]] == ["benchmark", "verify", "regress"]
    (called,) = [effect for effect in slow["effects"] if effect["metric"] == "cpu"]
    assert called["low"] < 2 < called["high"] or 1.7 < called["ratio"] < 2.3
    assert [effect["since"] for effect in after["effects"] if effect["metric"] == "cpu"] == [commits[2]]

    bw.cwd = small.folder
    words = ("--metric", METRIC, "--json", "--", "python", "bench.py")
    found = json.loads(bw("bisect", slow["control"], after["commit"], *words).stdout)
    assert (found["found"], found["suspects"]) == (True, [commits[2]])


@pytest.mark.long
def test_without_a_slow_down_nothing_is_raised(tmp_path: Path, bw: CommandLine) -> None:
    small, commits = repository(tmp_path, 3000, 3000, 3000)
    records = watch(bw, small, commits[1], code=0)
    assert [record["commit"] for record in records] == commits[1:]
    assert not any(effect.get("called") for record in records for effect in record["effects"])
