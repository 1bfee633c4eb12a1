"""How our own processes end."""

from __future__ import annotations

import subprocess
import sys

LEAVE = "from benchwright.agent.processes.fast_exit import leave\n"


def ended(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", LEAVE + code], capture_output=True, text=True, timeout=600)


def test_output_is_written_and_exit_handlers_run() -> None:
    done = ended("import atexit\natexit.register(print, 'handled')\nprint('said', end='')\nleave(3)")
    assert (done.returncode, done.stdout) == (3, "saidhandled\n")


def test_output_that_cannot_be_written_is_no_success() -> None:
    done = ended("import sys\nsys.stdout = open('/dev/full', 'w')\nprint('said')\nleave(0)")
    assert done.returncode != 0
    assert "No space left" in done.stderr


def test_threads_are_waited_for() -> None:
    done = ended(
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()\nleave(0)"
    )
    assert (done.returncode, done.stdout) == (0, "late\n")
