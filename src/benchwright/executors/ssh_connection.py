"""A node reached by ssh: the command line, and what failures mean."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence

from benchwright.core.system import Node
from benchwright.executors.connection import Connection, last_line

CONNECT_S = 15
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


class SshConnection(Connection):
    """`key`: the private key; None: ssh's default keys. `program`: the command `ssh`, with its options."""

    def __init__(self, node: Node, key: str | None, python: str, program: Sequence[str] = ("ssh",)) -> None:
        super().__init__(node, python)
        self._key = None if key is None else os.path.expanduser(key)
        self._ssh = tuple(program)

    def __str__(self) -> str:
        user = f"{self.node.user}@" if self.node.user else ""
        port = "" if self.node.port is None else f" port {self.node.port}"
        return f"node '{self.node.name}' ({user}{self.node.ip}{port})"

    def words(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        words = [*self._ssh, "-T", "-x", "-a", *self._port()]
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

    def ended(self, code: int) -> int:
        """ssh gives the exit code of the command there."""
        return code

    def explain_loss(self, printed: str) -> str:
        user, last = f"{self.node.user}@" if self.node.user else "", last_line(printed)
        by_hand = shlex.join(["ssh", *self._port(), f"{user}{self.node.ip}"])
        for pattern, meaning in _MEANINGS:
            if re.search(pattern, printed):
                return f"{last}; {meaning.format(by_hand=by_hand)}"
        return f"{last or 'the connection was lost'}; try it by hand: {by_hand}"
