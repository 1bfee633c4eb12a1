"""What a program does once it was measured has a limit of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from builders import job as job_in

from benchwright.core.job import Outcome
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
CHECKED = """
import sys, time
with open(sys.argv[1], "a") as file:
    file.write('{"event": "%s", "t": 1}\\n' % sys.argv[2])
time.sleep(float(sys.argv[3]))
"""


def ended(folder: Path, event: str, seconds: str, check_timeout_s: float | None = 60.0) -> Outcome:
    job = job_in(sys.executable, "-c", CHECKED, "STREAM", event, seconds, folder=folder, timeout_s=2.0)
    argv = tuple(job.stream if word == "STREAM" else word for word in job.argv)
    job = msgspec.structs.replace(job, argv=argv, check_timeout_s=check_timeout_s)
    with LocalExecutor() as executor:
        [outcome] = executor.run([job], Listener())
    return outcome


def test_one_that_told_that_its_check_began_has_that_long_from_its_timeout_on(tmp_path: Path) -> None:
    outcome = ended(tmp_path, "check_begin", "4")
    assert (outcome.exit_code, outcome.timed_out) == (0, False)


@pytest.mark.parametrize(("event", "check_timeout_s"), [("check_begin", 1.0), ("check_begin", None), ("checked", 60.0)])
def test_any_other_is_ended(tmp_path: Path, event: str, check_timeout_s: float | None) -> None:
    outcome = ended(tmp_path, event, "300", check_timeout_s)
    assert outcome.timed_out
    assert f"it ran longer than {2.0 + (1.0 if check_timeout_s == 1.0 else 0.0):g} s" in str(outcome.detail)
