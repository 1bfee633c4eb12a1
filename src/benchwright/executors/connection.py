"""The way to a node: a local command that runs another one there, with its stdin, stdout and exit code connected.

Agents, questions and file transfer need no more. Every variant passes tests/contracts/test_connection_contract.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from benchwright.agent.node_probe import ANSWER
from benchwright.agent.processes.process_tree import MARKER
from benchwright.core.machine import Machine
from benchwright.core.secrets import OWN_VARIABLE
from benchwright.core.system import Node
from benchwright.executors.agent_process import AGENT_FOLDER, LEASE_S, agent_words
from benchwright.executors.transfer.shell import Shell
from benchwright.version import __version__

CANNOT_CONNECT = 255
_LOOK_S = 0.05
_SHARED = "benchwright and its Python must be at the same paths on every node: put them on a shared file system"


class Connection(Shell, Protocol):
    """A `Shell` on a node, and benchwright's own programs there. A variant implements `words`, `ended` and `explain_loss`.

    Constructing it connects to nothing.
    """

    node: Node
    program: str = "ssh"  # that makes the connection, in messages
    foreign_variables: tuple[str, ...] = ()  # prefixes of those that the scheduler sets there and programs must not see
    _python: str
    _agent_folder: str

    def __init__(self, node: Node, python: str) -> None:
        self.node = node
        self._python = python
        self._agent_folder = AGENT_FOLDER

    @abstractmethod
    def words(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        """The local command that runs `command` there, without a terminal, with these variables added."""

    @abstractmethod
    def explain_loss(self, printed: str) -> str:
        """Why there is no connection, from the output of the local command: its cause and a remedy."""

    def use(self, python: str, agent_folder: str) -> None:
        """The node has the agent elsewhere, and another interpreter for it."""
        self._python, self._agent_folder = python, agent_folder

    def agent_words(self, token: str) -> list[str]:
        """The local command that starts an agent there and stays connected to it; its processes carry `token`."""
        known = {name: value for name in (OWN_VARIABLE,) if (value := os.environ.get(name))}
        lease = (f"{LEASE_S:g}", *self.foreign_variables)
        return self.words(agent_words(self._python, self._agent_folder, *lease), {MARKER: token, **known})

    def start_visit(self, *arguments: str) -> Visit:
        """Ask the node something: see `benchwright.agent.node_probe`."""
        return Visit(
            self, self.words([self._python, "-P", os.path.join(self._agent_folder, "node_probe.py"), *arguments])
        )

    def explain(self, code: int, printed: str) -> str:
        """Why a command failed there, from the exit code that `ended` gave and its output."""
        if code == CANNOT_CONNECT:
            return f"{self}: {self.explain_loss(printed)}"
        if code < 0:
            return f"{self}: {self.program} was killed by signal {-code}"
        last = last_line(printed)
        if is_missing(code, printed):
            return f"{self}: {last or self._python + ' does not run there'}; {_SHARED}"
        return f"{self}: {last or f'its Python ended with code {code}'}"


def last_line(printed: str) -> str:
    """The last line that is not blank."""
    return next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "")


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a node; `problem`: why it cannot be used, in words."""

    machine: Machine | None = None
    problem: str | None = None
    is_apart: bool = False  # it answers, but does not see our files: they have to be sent


def is_missing(code: int, printed: str) -> bool:
    """Whether a command failed because the node lacks the interpreter or the file it was to run."""
    return code in (126, 127) or "can't open file" in printed


class Visit:
    """A question to a node, in progress."""

    def __init__(self, connection: Connection, words: list[str]) -> None:
        self._connection = connection
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 open to the end
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: str | None = None
        self._found_no_agent = False
        try:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=self._printed, stderr=self._printed, start_new_session=True
            )
        except OSError as error:
            self._failure = f"{words[0]} could not be started: {error.strerror}; install {words[0]}"

    @property
    def is_over(self) -> bool:
        return self._process is None or self._process.poll() is not None

    @property
    def found_no_agent(self) -> bool:
        """The node was reached, and has no interpreter or no agent at the paths of this machine."""
        return self._found_no_agent

    def finish(self) -> tuple[dict[str, Any] | None, str]:
        """The answer, or None and why there is none. Aborts a question still in progress."""
        printed = ""
        code = None
        if self._process is not None:
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
                self._failure = (
                    f"{self._connection}: it did not answer in time; check that it is on, and not overloaded"
                )
            code = self._connection.ended(self._process.returncode)
            self._printed.seek(0)
            printed = self._printed.read().decode(errors="replace")
        self._printed.close()
        for line in printed.splitlines():
            if line.startswith(ANSWER) and self._failure is None:
                answer: dict[str, Any] = json.loads(line.removeprefix(ANSWER))
                return answer, ""
        if self._failure is None and code is not None:
            self._failure = self._connection.explain(code, printed)
            self._found_no_agent = is_missing(code, printed)
        return None, self._failure or ""


def wait_for(visits: Sequence[Visit], limit_s: float, given_up: Callable[[], bool]) -> None:
    """Until all are over, time is up, or it is given up."""
    deadline = time.monotonic() + limit_s
    while not all(visit.is_over for visit in visits) and time.monotonic() < deadline and not given_up():
        time.sleep(_LOOK_S)


def read_look(
    connection: Connection, visit: Visit, folders: Sequence[str], expected: str, digests: Mapping[str, str]
) -> Look:
    """The result of a `look` at a check file in each of `folders`, and at folders with known `digests`."""
    answer, failure = visit.finish()
    if answer is None:
        return Look(problem=failure, is_apart=visit.found_no_agent)
    if answer["version"] != __version__:
        return Look(
            problem=f"{connection}: it has benchwright {answer['version']}, this machine {__version__}; {_SHARED}"
        )
    for folder, (path, text) in zip(folders, answer["files"].items(), strict=True):
        if text != expected:
            what = "cannot see" if text is None else "sees another file at"
            return Look(
                problem=f"{connection}: it {what} {path}; {folder} must be on a file system that all nodes share",
                is_apart=True,
            )
    for path, digest in digests.items():
        if answer["digests"].get(path) != digest:
            return Look(
                problem=f"{connection}: {path} there is not the benchprobe of this machine; "
                "remove that folder there, or put it on a file system that all nodes share"
            )
    return Look(machine=msgspec.convert(answer["machine"], Machine))
