"""What comes from a child after the program has ended is no result of the program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command_line import CommandLine, metric

# The child waits until the end of the program was noticed. It would be asked to end soon after.
LATE = (
    """(trap '' TERM; until grep -qs '"event":"exit"' {base}/runs/*/*.data; do sleep 0.02; done; echo speed=999) & """
)
GIVES = """
import subprocess, sys
from benchprobe import give
give(speed=1.0)
subprocess.Popen([sys.executable, "late.py"])
"""
GIVES_LATE = """
import json, os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stream = json.loads(os.environ["BENCHPROBE_CONFIG"])["stream"]
while '"event":"exit"' not in open(stream).read():
    time.sleep(0.02)
from benchprobe import give
give(speed=999.0)
"""


def told(body: dict[str, Any]) -> str:
    return " ".join(note["text"] for launch in body["results"][0]["launches"] for note in launch["notes"])


def test_what_a_child_prints_after_the_programs_end_does_not_count_and_is_told(bw: CommandLine) -> None:
    body = bw.json("run", "--metric", "speed", "--", "sh", "-c", LATE.format(base=bw.base) + "echo speed=1")
    assert metric(body, "speed")["value"] == 1.0
    assert "10 bytes of output came from a process that outlived the program" in told(body)


def test_a_result_that_only_came_after_the_programs_end_is_no_result(bw: CommandLine) -> None:
    body = bw.json("run", "--metric", "speed", "--", "sh", "-c", LATE.format(base=bw.base) + "true", code=1)
    assert (body["status"], body["results"][0]["reason"]) == ("failed", "no_data")
    assert "came from a process that outlived the program" in told(body)


def test_what_a_child_prints_while_the_program_runs_counts(bw: CommandLine) -> None:
    body = bw.json("run", "--metric", "speed", "--", "sh", "-c", "(sleep 0.1; echo speed=999) & wait")
    assert metric(body, "speed")["value"] == 999.0
    assert "outlived the program" not in told(body)


def test_what_a_child_gives_after_the_programs_end_does_not_count(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    script("gives.py", GIVES)
    script("late.py", GIVES_LATE)
    body = bw.json("run", "--", sys.executable, "gives.py")
    assert metric(body, "speed")["value"] == 1.0
