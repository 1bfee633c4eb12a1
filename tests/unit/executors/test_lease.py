"""Agents elsewhere end by themselves when nobody speaks to them any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_kubectl
import pytest
from builders import job as job_in
from processes import carrying, wait_for

from benchwright.core.system import Node, System
from benchwright.executors import agent_process, connection, lease
from benchwright.executors.agent_process import agent_words
from benchwright.executors.base import Listener
from benchwright.executors.ssh import ClusterExecutor

SYSTEM = System(
    nodes=(Node(name="far", ip="far", via=(sys.executable, fake_kubectl.__file__, "exec", "-i", "pod", "--")),)
)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEASE_S", 2.0)
    monkeypatch.setattr(agent_process, "SILENCE_S", 4.0)
    monkeypatch.setattr(agent_process, "WORD_S", 0.3)
    monkeypatch.setattr(lease, "WORD_S", 0.3)


@pytest.fixture
def far_job(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    def make(*argv: str) -> Any:
        given = {"cwd": str(tmp_path), "grace_s": 1.0, "env": {"LEASE_TEST": str(tmp_path)}, "node": "far"}
        return job_in(*argv, folder=tmp_path / "run", id="job", **given)

    yield make
    assert carrying(f"LEASE_TEST={tmp_path}") == []


def test_an_agent_that_hears_nothing_ends():
    with subprocess.Popen(
        agent_words(sys.executable, agent_process.AGENT_FOLDER, "0.5"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as agent:
        assert agent.wait(600) == 0
        assert agent.stderr is not None
        assert "no word from the main process for 0.5 s" in agent.stderr.read()


def test_words_keep_it_alive_while_its_job_runs_and_while_nothing_does(far_job):
    with ClusterExecutor(SYSTEM) as executor:
        [outcome] = executor.run([far_job("sleep", "3")], Listener())
        assert (outcome.exit_code, outcome.detail) == (0, None)
        [agent] = executor._agents.values()
        time.sleep(3)
        assert agent.is_alive()


class _Started(Listener):
    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act

    def on_started(self, job_id: str, pid: int) -> None:
        threading.Thread(target=self._act).start()


def test_its_jobs_end_when_the_words_stop(far_job, tmp_path):
    with ClusterExecutor(SYSTEM) as executor:
        [outcome] = executor.run([far_job("sleep", "300")], _Started(executor._lease.stop))
    assert outcome.exit_code is None
    assert outcome.detail is not None or outcome.signal is not None


def test_an_agent_that_does_not_answer_is_given_up(far_job, tmp_path):
    def freeze() -> None:
        wait_for(lambda: carrying(f"LEASE_TEST={tmp_path}"))
        [agent] = executor._agents.values()
        os.killpg(agent._pid, signal.SIGSTOP)

    with ClusterExecutor(SYSTEM) as executor:
        [outcome] = executor.run([far_job("sleep", "300")], _Started(freeze))
    assert outcome.exit_code is None
    assert "it has not answered for" in outcome.detail


def test_variables_of_the_scheduler_do_not_reach_programs(tmp_path):
    environment = {**os.environ, "SLURM_JOB_ID": "1", "PMI_RANK": "0", "MINE": "1"}
    code = "from benchwright.agent import node; import os, sys; node.NodeAgent.run = lambda self: print(sorted(os.environ), file=sys.stderr); node.serve(['60', 'SLURM_', 'PMI_'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "MINE" in done.stderr
    assert "SLURM" not in done.stderr
    assert "PMI" not in done.stderr
