"""Ending everything below a process, step by step. Each test is a process of its own: it ends all its children."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

BEGIN = """
import os, signal, subprocess, sys
from benchwright.agent.supervise.launch_end import Takedown
S = 1_000_000_000
obedient = subprocess.Popen(["sleep", "300"], start_new_session=True)
stubborn = subprocess.Popen(
    [sys.executable, "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(300)"],
    stdout=subprocess.PIPE, start_new_session=True,
)
stubborn.stdout.readline()
everybody = {obedient.pid, stubborn.pid}
"""


def failure(steps: str) -> str | None:
    """The stderr of a process that runs these steps; None if it succeeds."""
    done = subprocess.run([sys.executable, "-c", BEGIN + steps], capture_output=True, text=True, timeout=600)
    return done.stderr if done.returncode else None


def test_term_comes_first_and_kill_after_the_grace() -> None:
    assert (
        failure("""
down = Takedown(grace_s=5, now_ns=0)
down.advance(0)
assert (down.asked, down.killed, down.next_ns) == (everybody, set(), 5 * S)
assert obedient.wait() == -signal.SIGTERM
down.advance(5 * S - 1)
assert (down.killed, stubborn.poll()) == (set(), None)
down.advance(5 * S)
assert (down.killed, stubborn.wait()) == ({stubborn.pid}, -signal.SIGKILL)
""")
        is None
    )


def test_nobody_is_asked_before_they_had_time_to_end_by_themselves() -> None:
    assert (
        failure("""
down = Takedown(grace_s=5, now_ns=0, wait_s=2)
down.advance(2 * S - 1)
assert (down.asked, obedient.poll(), down.next_ns) == (set(), None, 2 * S)
down.advance(2 * S)
assert down.asked == everybody
obedient.wait(); stubborn.kill(); stubborn.wait()
""")
        is None
    )


@pytest.mark.parametrize("asked_before", [True, False])
def test_in_a_hurry_neither_the_wait_nor_the_grace_counts(asked_before: bool) -> None:
    assert (
        failure(f"""
down = Takedown(grace_s=90, now_ns=0, wait_s={0 if asked_before else 60})
down.advance(0)
assert bool(down.asked) is {asked_before}
down.hurry()
down.advance(1)
assert stubborn.wait() == -signal.SIGKILL
obedient.wait()
""")
        is None
    )
