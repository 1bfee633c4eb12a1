"""Runs jobs on this machine, through a node agent in its own process."""

from __future__ import annotations

import sys

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job
from benchwright.core.machine import Machine
from benchwright.executors.agent_executor import AgentExecutor, OpenJobs
from benchwright.executors.agent_process import AgentProcess, agent_words, new_token
from benchwright.executors.base import Executor, Site, runs_here

HERE = "localhost"


class LocalExecutor(AgentExecutor):
    """Starts its agent with the first job. If the agent is killed, its jobs are ended and the next `run` starts another."""

    def __init__(self, python: str = sys.executable) -> None:
        super().__init__()
        self._python = python

    def machine(self) -> Machine:
        return read_machine()

    def _node_of(self, job: Job) -> str:
        return HERE

    def _bring_up(self, launch: OpenJobs) -> None:
        if HERE in self._agents and not self._agents[HERE].is_alive():  # killed while nothing ran
            self._agents.pop(HERE).abandon()
        if HERE not in self._agents:
            self._agents[HERE] = AgentProcess.start(self._agent_command(), new_token())

    def _agent_command(self) -> list[str]:
        """A subclass may put something before it."""
        return agent_words(self._python)

    def _describe_loss(self, node: str, agent: AgentProcess, last_words: str) -> str:
        return self._describe_loss_here(agent, last_words)


@runs_here
def open_executor(argument: str, site: Site) -> Executor:
    """`--on local`: this machine."""
    if argument:
        raise InvalidInput(f"'local:{argument}' names more than this machine", where="--on", remedy="write --on local")
    return LocalExecutor()
