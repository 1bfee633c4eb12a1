from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import psutil
import pytest
from builders import job as job_in

from benchwright.core.errors import AgentLost
from benchwright.core.job import Job, Outcome
from benchwright.executors.agent_executor import OpenJobs
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor


@pytest.fixture
def make_job(tmp_path: Path) -> Callable[..., Job]:
    return partial(job_in, folder=tmp_path)


def is_agent(process: psutil.Process) -> bool:
    try:
        return "agent" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # or a zombie
        return False


def test_no_agent_is_started_before_there_is_a_job():
    before = set(psutil.Process().children())
    with LocalExecutor() as executor:
        executor.machine()
        assert set(psutil.Process().children()) <= before


def test_one_agent_serves_all_jobs_and_is_gone_afterwards(make_job):
    with LocalExecutor() as executor:
        agents = []
        for _ in range(3):
            executor.run([make_job("true")], Listener())
            agents.append([child.pid for child in psutil.Process().children() if is_agent(child)])
        assert len(agents[0]) == 1
        assert agents[0] == agents[1] == agents[2]
    assert not psutil.pid_exists(agents[0][0])


def test_it_leaves_no_descriptors_open(make_job):
    before = psutil.Process().num_fds()
    with LocalExecutor() as executor:
        executor.run([make_job("true")], Listener())
    assert psutil.Process().num_fds() == before


def test_an_error_of_the_listener_ends_the_job(make_job):
    pids = []

    class Broken(Listener):
        def on_started(self, job_id: str, pid: int) -> None:
            pids.append(pid)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), LocalExecutor() as executor:
        executor.run([make_job("sleep", "300")], Broken())
    assert not psutil.pid_exists(pids[0])


def test_an_agent_that_cannot_start_is_an_error_that_says_why(make_job, tmp_path):
    with LocalExecutor(python="/no/such/python") as executor, pytest.raises(AgentLost, match="/no/such/python"):
        executor.run([make_job("true")], Listener())
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho it hurts >&2\nexit 1\n")
    broken.chmod(0o755)
    with LocalExecutor(python=str(broken)) as executor, pytest.raises(AgentLost, match="it hurts"):
        executor.run([make_job("true")], Listener())


def test_an_agent_killed_while_it_starts_costs_only_that_job(make_job, tmp_path):
    dying = tmp_path / "python"
    dying.write_text(
        f'#!/bin/sh\nif [ -e {tmp_path}/once ]; then exec {sys.executable} "$@"; fi\n'
        f"touch {tmp_path}/once\nkill -9 $$\n"
    )
    dying.chmod(0o755)
    with LocalExecutor(python=str(dying)) as executor:
        [outcome] = executor.run([make_job("true")], Listener())
        assert outcome.exit_code is None
        assert outcome.detail == "the agent was killed"
        [outcome] = executor.run([make_job("true")], Listener())
        assert outcome.exit_code == 0


def test_a_job_that_is_reported_twice_ends_once_and_as_it_was_reported_first(make_job):
    """A supervisor that was killed right after its last word is reported by the agent, too."""
    told: list[Outcome] = []

    class Hear(Listener):
        def on_finished(self, outcome: Outcome) -> None:
            told.append(outcome)

    launch = OpenJobs([make_job("true")], Hear(), {"job": "localhost"}, lambda: False)
    fine, lost = Outcome(job="job", exit_code=0), Outcome(job="job", detail="the agent was killed")
    for outcome in (fine, lost):
        launch.take({"say": "finished", "outcome": msgspec.to_builtins(outcome)})
    assert told == [fine]
    assert (launch.outcomes, launch.open) == ({"job": fine}, set())


def test_a_stop_before_it_is_entered_is_not_lost(make_job):
    executor = LocalExecutor()
    executor.stop()
    with executor:
        [outcome] = executor.run([make_job("true")], Listener())
    assert outcome.stopped


def test_the_agent_imports_nothing_heavy():
    """It is started for every run, so what it imports is paid for by every first job."""
    import subprocess

    code = "import sys, benchwright.agent.node; print(*sys.modules)"
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert not {"msgspec", "psutil", "pynvml", "subprocess", "dataclasses", "importlib.metadata"} & set(loaded)
