"""The wall clock is set back while a run is made: durations, rates and verdicts do not notice."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from command_line import CommandLine, metric

PY = sys.executable
# Loaded by every Python of the run, benchwright itself and its agent included: each look at the clock is 100 s earlier.
BACKWARDS = """
import time
_now = [time.time()]
def back():
    _now[0] -= 100.0
    return _now[0]
time.time = back
"""
LOOP = """
import time
from benchprobe import iterate
assert time.time() > time.time(), "the clock of this test does not run backwards"
for _ in iterate("train", range(60)):
    time.sleep(0.005)
"""


def test_a_clock_that_runs_backwards_changes_no_number(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    script("sitecustomize.py", BACKWARDS)
    script("loop.py", LOOP)
    body = bw.json("run", "--warmup", "10", "--repeat", "2", "--", PY, "loop.py", env={"PYTHONPATH": str(bw.cwd)})
    assert body["status"] == "ok"
    assert 0.3 < metric(body, "process.duration")["value"] < 60
    assert 1 < metric(body, "rate")["value"] <= 200
    for launch in body["results"][0]["launches"]:
        assert launch["facts"]["loops"][0]["steps"]["measured"] == 50
