"""A node reached by ssh: the command line, and what failures mean."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from benchwright.agent.node_probe import ANSWER
from benchwright.agent.processes.process_tree import MARKER
from benchwright.core.machine import Machine
from benchwright.core.node.system import Node
from benchwright.core.secrets.names import OWN_VARIABLE
from benchwright.executors.agent_process import AGENT_FOLDER, agent_words
from benchwright.version import __version__

CANNOT_CONNECT = 255  # the exit code of ssh itself
CONNECT_S = 15
_LOOK_S = 0.05
_OPTIONS = {
    "BatchMode": "yes",  # never asks
    "ConnectTimeout": str(CONNECT_S),
    "ServerAliveInterval": "10",  # a node without power is noticed within a minute
    "ServerAliveCountMax": "3",
    "ControlPath": "none",  # our own connection: when it ends, so does the agent
}
# What ssh prints last → what it means and what to do.
_MEANINGS = (
    (r"UNPROTECTED PRIVATE KEY", "ssh refuses a key that others can read; chmod 600 it"),
    (r"Permission denied", "no key was accepted; name the right one as sshkey in the system file"),
    (
        r"Host key verification failed",
        "its host key is unknown or has changed; connect once by hand: {by_hand}",
    ),
    (r"Connection refused", "no ssh server listens there; check its ip and port"),
    (r"resolve hostname", "no such host; check its ip"),
    (r"timed out|No route to host|unreachable|not responding", "it does not answer; check that it is on, and its ip"),
)
_SHARED = "benchwright and its Python must be at the same paths on every node: put them on a shared file system"


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What a node reported; `problem`: why it cannot be used, in words."""

    machine: Machine | None = None
    problem: str | None = None
    is_apart: bool = False  # it answers, but does not see our files: they have to be sent


class SshConnection:
    """How to run programs on a node. Constructing it connects to nothing."""

    def __init__(self, node: Node, key: str | None, python: str, program: Sequence[str] = ("ssh",)) -> None:
        self.node = node
        self._key = None if key is None else os.path.expanduser(key)
        self._python = python
        self._agent_folder = AGENT_FOLDER
        self._program = tuple(program)

    def use(self, python: str, agent_folder: str) -> None:
        """The node has the agent elsewhere, and another interpreter for it."""
        self._python, self._agent_folder = python, agent_folder

    def __str__(self) -> str:
        user = f"{self.node.user}@" if self.node.user else ""
        port = "" if self.node.port is None else f" port {self.node.port}"
        return f"node '{self.node.name}' ({user}{self.node.ip}{port})"

    def words(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        """The local command that runs `command` there, without a terminal."""
        words = [*self._program, "-T", "-x", "-a", *self._port()]
        for name, value in _OPTIONS.items():
            words += ["-o", f"{name}={value}"]
        if self._key is not None:
            words += ["-i", self._key, "-o", "IdentitiesOnly=yes"]
        if self.node.user:
            words += ["-l", self.node.user]
        settings = [f"{name}={value}" for name, value in (environment or {}).items()]
        # The login shell there gets one string: every word is quoted for it.
        return [*words, "--", self.node.ip, "exec " + shlex.join(["env", *settings, *command])]

    def _port(self) -> list[str]:
        """Unless one was given, the one that the user's ssh configuration has for the host."""
        return [] if self.node.port is None else ["-p", str(self.node.port)]

    def agent_words(self, token: str) -> list[str]:
        """The local command that starts an agent there and stays connected to it; its processes carry `token`."""
        known = {name: value for name in (OWN_VARIABLE,) if (value := os.environ.get(name))}
        return self.words(agent_words(self._python, self._agent_folder), {MARKER: token, **known})

    def start_visit(self, *arguments: str) -> Visit:
        """Ask the node something: see `benchwright.agent.node_probe`."""
        return Visit(
            self, self.words([self._python, "-P", os.path.join(self._agent_folder, "node_probe.py"), *arguments])
        )

    def ended(self, code: int) -> int:
        """ssh gives the exit code of the command there."""
        return code

    def explain(self, code: int, printed: str) -> str:
        """Why the node cannot be used, from how ssh ended and what it and the node printed."""
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        last = lines[-1] if lines else ""
        if code == CANNOT_CONNECT:
            user = f"{self.node.user}@" if self.node.user else ""
            by_hand = shlex.join(["ssh", *self._port(), f"{user}{self.node.ip}"])
            for pattern, meaning in _MEANINGS:
                if re.search(pattern, printed):
                    return f"{self}: {last}; {meaning.format(by_hand=by_hand)}"
            return f"{self}: {last or 'the connection was lost'}; try it by hand: {by_hand}"
        if code < 0:
            return f"{self}: ssh was killed by signal {-code}"
        if is_missing(code, printed):
            return f"{self}: {last or self._python + ' does not run there'}; {_SHARED}"
        return f"{self}: {last or f'its Python ended with code {code}'}"


def is_missing(code: int, printed: str) -> bool:
    """Whether a command failed because the node lacks the interpreter or the file it was to run."""
    return code in (126, 127) or "can't open file" in printed


class Visit:
    """A question to a node, in progress."""

    def __init__(self, connection: SshConnection, words: list[str]) -> None:
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
            self._failure = f"{words[0]} could not be started: {error.strerror}; install an ssh client"

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
            code = self._process.returncode
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
    connection: SshConnection, visit: Visit, folders: Sequence[str], expected: str, digests: Mapping[str, str]
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
