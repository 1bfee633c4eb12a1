"""Benchmarks that take turns: each has the machine to itself, and both see the same machine."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, metric
from onnx_models import looked_up
from processes import wait_for

Write = Callable[[str, str], Path]
Span = tuple[int, int]
PY = sys.executable

LOOP = """
import sys, time
from benchprobe import iterate
for n in iterate("train", range(int(sys.argv[1])), batch_size=4):
    time.sleep(float(sys.argv[2]))
"""
CLOCK = """
import time
from benchprobe import give, iterate
give(**{"flops_per_item.fp32": 8.0})
begun = time.perf_counter()
for n in iterate("train", range(100000), batch_size=4):
    time.sleep(0.004)
    give(loss=1.0, speed=4 * (n + 1) / (time.perf_counter() - begun))
"""
# The third that comes to its step 10 waits there until it may go on.
HELD = """
    if n == 10:
        import os
        open("begun", "a").write("x")
        while os.path.getsize("begun") > 2 and not os.path.exists("go"):
            time.sleep(0.01)
"""
TURNS = ("run", "--turns", "100ms", "--warmup", "5", "--no-store")


def steps_of(stream: Path) -> list[Span]:
    """When each chunk of measured steps began and ended, by the clock that all processes share."""
    events = [json.loads(line) for line in stream.read_text().splitlines()]
    return [(e["t"], e["t"] + sum(e["step_ns"])) for e in events if e["event"] == "steps" and e["phase"] == "measured"]


def turns_in(mine: list[Span], other: list[Span]) -> int:
    """How often the other one ran between two chunks of this one."""
    return sum(any(end <= t < begin for t, _ in other) for (_, end), (begin, _) in itertools.pairwise(mine))


@pytest.fixture
def taken(bw: CommandLine, script: Write) -> dict[str, Any]:
    script("a.py", LOOP)
    script("b.py", LOOP)
    words = ("-c", f"{PY} a.py 100000 0.004", "-c", f"{PY} b.py 100000 0.008")
    return bw.json(*TURNS, "--repeat", "2", "--stop", "600ms", *words)


def test_only_one_at_a_time_goes_through_its_loop(bw: CommandLine, taken: dict[str, Any]) -> None:
    folder = bw.last_run()
    for repeat in (0, 1):
        a, b = (steps_of(folder / f"{name}.R{repeat}.D0.data") for name in ("a.py", "b.py"))
        overlaps = [(x, y) for x in a for y in b if x[0] < y[1] and y[0] < x[1]]
        assert not overlaps
        assert turns_in(a, b) >= 3
        assert turns_in(b, a) >= 3


def test_pauses_count_for_nothing(taken: dict[str, Any]) -> None:
    for result, step_s in zip(taken["results"], (0.004, 0.008), strict=True):
        for launch in result["launches"]:
            stop = launch["facts"]["loops"][0]["stop"]
            assert stop["turn_s"] == 0.1
            assert stop["turns"] >= 4
            assert stop["paused_ns"] > 0.3e9
            steps = launch["facts"]["loops"][0]["steps"]["measured"]
            assert 0.05 * 0.6 / step_s < steps <= 0.6 / step_s + 1  # 600 ms of its own, not of the clock's
        names = {m["metric"] for m in result["metrics"]}
        assert "process.duration" not in names
        assert not {name for name in names if name.startswith(("cpu.", "gpu.", "energy."))}
        assert {"rate", "step_time", "process.cpu_time", "memory.peak_rss"} <= names


def test_they_are_compared_as_pairs(bw: CommandLine, script: Write) -> None:
    script("a.py", LOOP)
    words = ("-c", f"{PY} a.py 100000 0.004", "-c", f"{PY} a.py 100000 0.008")
    body = bw.json(*TURNS, "--repeat", "6", "--stop", "300ms", *words)
    names = [result["benchmark"] for result in body["results"]]
    compared = bw.json("compare", body["id"], "--between", *names)
    (rate,) = [e for e in compared["effects"] if e["metric"] == "rate"]
    assert rate["paired"]
    assert rate["ratio"] < 1  # a half; on a busy machine, where both wait for their turn on a core, more
    assert not [e for e in compared["effects"] if e["metric"] == "process.duration"]


def test_what_a_program_works_out_by_its_own_clock_is_left_out(bw: CommandLine, script: Write) -> None:
    script("a.py", CLOCK)
    words = ("--stop", "500ms", "-c", f"{PY} a.py", "-c", f"{PY} a.py")
    for result in bw.json(*TURNS, *words)["results"]:
        names = {m["metric"] for m in result["metrics"]}
        assert {"rate", "loss", "flops_per_item.fp32"} <= names
        assert "speed" not in names
        assert any("speed" in note["text"] for note in result["launches"][0]["notes"])
    alone = bw.json("run", "--warmup", "5", "--no-store", *words)
    assert all("speed" in {m["metric"] for m in result["metrics"]} for result in alone["results"])


def test_the_plan_and_the_report_tell_it(bw: CommandLine, script: Write) -> None:
    script("a.py", LOOP)
    words = ("--turns", "100ms", "-c", f"{PY} a.py 30 0.004", "-c", f"{PY} a.py 30 0.004")
    assert "[a.py.D0, a.py-2.D0]" in bw("plan", *words).stdout
    assert {job["turn_s"] for b in bw.json("plan", *words)["benchmarks"] for job in b["jobs"]} == {0.1}
    assert "1 launch in turns of 100 ms" in bw("run", *words, "--warmup", "5", "--no-store").stdout
    assert "1 launch in turns of 100 ms" in bw("report", "last", "--format", "html").stdout


def test_a_program_without_a_loop_is_invalid_and_the_other_is_measured(bw: CommandLine, script: Write) -> None:
    script("a.py", LOOP)
    body = bw.json(
        *TURNS, "--stop", "300ms", "-c", f"{PY} a.py 100000 0.004", "-c", f"{PY} -c 'print(1)'", code=1
    )  # fmt: skip
    measured, other = (result["launches"][0] for result in body["results"])
    assert measured["status"] == "ok"
    assert (other["status"], other["reason"]) == ("failed", "invalid")
    assert "took no turns" in other["detail"]
    assert metric(body, "rate")["value"] > 0


def test_one_that_dies_in_its_turn_does_not_hold_up_the_other(bw: CommandLine, script: Write) -> None:
    script("a.py", LOOP)
    script("dies.py", LOOP + "    if n == 60: import os; os._exit(3)\n")
    body = bw.json(
        *TURNS, "--stop", "1s", "-c", f"{PY} a.py 100000 0.004", "-c", f"{PY} dies.py 100000 0.004", code=1
    )  # fmt: skip
    survivor, dead = (result["launches"][0] for result in body["results"])
    assert survivor["status"] == "ok"
    assert survivor["facts"]["loops"][0]["steps"]["measured"] > 20
    assert (dead["status"], dead["exit_code"]) == ("failed", 3)


def test_loops_of_different_length_end_each_by_itself(bw: CommandLine, script: Write) -> None:
    script("a.py", LOOP)
    body = bw.json(*TURNS, "-c", f"{PY} a.py 60 0.004", "-c", f"{PY} a.py 400 0.004")
    steps = [r["launches"][0]["facts"]["loops"][0]["steps"] for r in body["results"]]
    assert [sum(each.values()) for each in steps] == [60, 400]


def test_an_interrupted_pair_is_run_again_as_a_pair(bw: CommandLine, script: Write) -> None:
    script("a.py", LOOP + HELD)
    words = ("--repeat", "2", "--stop", "600ms", "-c", f"{PY} a.py 100000 0.004", "-c", f"{PY} a.py 100000 0.008")
    process = subprocess.Popen(
        bw.argv(*TURNS, *words), cwd=bw.cwd, env=bw.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert wait_for(lambda: (bw.cwd / "begun").exists() and len((bw.cwd / "begun").read_bytes()) == 3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(600) != 0
    (bw.cwd / "go").touch()
    first = {p.name: p.read_bytes() for p in bw.last_run().glob("*.R0.D0.data")}
    assert len(first) == 2
    body = bw.json("run", f"--resume={bw.last_run().name}", "--no-store")
    assert [launch["status"] for result in body["results"] for launch in result["launches"]] == ["ok"] * 4
    assert {p.name: p.read_bytes() for p in bw.last_run().glob("*.R0.D0.data")} == first
    a, b = (steps_of(p) for p in sorted(bw.last_run().glob("*.R1.D0.data")))
    assert turns_in(a, b) >= 3
    assert not os.path.exists(bw.last_run() / ".barrier")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--turns", "0.5s", "--", "true"), "only true can be run, but taking turns needs two"),
        (("--turns", "1ms", "-c", "true", "-c", "false"), "1ms is too short"),
        (("--turns", "soon", "-c", "true", "-c", "false"), "'soon' is not a duration"),
        (("--turns", "1s", "--no-interleave", "-c", "true", "-c", "false"), "contradicts --no-interleave"),
        (("--turns", "1s", "--metric", r"s=(\d+)", "-c", "true", "-c", "false"), "by its own clock"),
        (("--turns", "1s", "--jobs", "2", "-c", "true", "-c", "false"), "is measured by several processes"),
    ],
)
def test_what_cannot_take_turns_is_refused(bw: CommandLine, words: tuple[str, ...], text: str) -> None:
    done = bw("run", *words, code=2)
    assert text in done.stderr
    assert not (bw.base / "runs").exists() or not list((bw.base / "runs").iterdir())


@pytest.mark.long
def test_models_of_scripts_are_refused(bw: CommandLine, script: Write) -> None:
    script("model.py", "import torch\nmodel = torch.nn.Linear(2, 2)\nmodel(torch.ones(1, 2))\n")
    script("other.py", "import torch\nmodel = torch.nn.Linear(2, 2)\nmodel(torch.ones(1, 2))\n")
    done = bw("run", "model.py", "other.py", "--turns", "1s", code=2)
    assert "models of scripts cannot take turns yet" in done.stderr


def test_models_are_refused(bw: CommandLine) -> None:
    model = looked_up(bw.cwd)
    shutil.copy(model, bw.cwd / "other.onnx")
    words = ("--shape", "ids=2x6", "--runtime", "onnxruntime", "--turns", "1s")
    done = bw("run", "tiny.onnx", "other.onnx", *words, code=2)
    assert "models of scripts cannot take turns yet" in done.stderr
