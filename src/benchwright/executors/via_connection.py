"""A node reached by any program that runs a command elsewhere with its pipes connected, such as `kubectl exec -i POD --`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchwright.core.system import Node
from benchwright.executors.connection import CANNOT_CONNECT, Connection, last_line
from benchwright.executors.ssh_connection import SshConnection

# Such programs end with codes of their own when they fail. Codes of the command there are moved beyond those: 0 stays.
_SHIFT = 50
_SHIFTED = f'"$@" || exit $(($? < 150 ? $? + {_SHIFT} : 255))'
_SAYS_CODE = re.compile(r"^.*exit code \d+\.?\s*$", re.MULTILINE)  # printed after the output of the command
_KILLED = range(129, 160)  # by a signal, as seen by the program that runs the command


def shifted(command: Sequence[str]) -> list[str]:
    """The command to give to such a program in place of `command`."""
    return ["sh", "-c", _SHIFTED, "sh", *command]


def unshifted(code: int) -> int:
    """The exit code of the command there, from that of the program here; 255: there was no connection, or it was lost."""
    if code <= 0:
        return code
    return code - _SHIFT if code > _SHIFT and code not in _KILLED and code < 150 + _SHIFT else CANNOT_CONNECT


class ViaConnection(Connection):
    """`node.via`: the words before a command."""

    def __init__(self, node: Node, python: str) -> None:
        super().__init__(node, python)
        self.program = node.via[0]

    def __str__(self) -> str:
        return f"node '{self.node.name}' (via {self.program})"

    def words(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
        settings = [f"{name}={value}" for name, value in (environment or {}).items()]
        return [*self.node.via, *shifted(["env", *settings, *command])]

    def ended(self, code: int) -> int:
        return unshifted(code)

    def explain(self, code: int, printed: str) -> str:
        return super().explain(code, _SAYS_CODE.sub("", printed))

    def explain_loss(self, printed: str) -> str:
        by_hand = " ".join((*self.node.via, "true"))
        return f"{last_line(printed) or 'the connection was lost'}; try it by hand: {by_hand}"


def connection_to(node: Node, key: str | None, python: str, ssh: Sequence[str] = ("ssh",)) -> Connection:
    """To a node of a system file."""
    return ViaConnection(node, python) if node.via else SshConnection(node, key, python, ssh)
