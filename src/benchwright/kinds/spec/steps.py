"""The commands of one launch: one program, or several steps that a shell runs one after another.

Only a shell needs nothing installed on a board, and starts within a millisecond.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.secrets.redact import redact_text

Line = str | tuple[str, ...]  # the words of a command, or one text that only a shell understands
SHELL = "/bin/sh"


class CommandStep(msgspec.Struct, frozen=True):
    """One command, with its changes to the environment."""

    line: Line
    env: Mapping[str, str] = {}

    @property
    def is_plain(self) -> bool:
        return isinstance(self.line, tuple) and not self.env

    def text(self) -> str:
        """For a shell."""
        words = shlex.join(self.line) if isinstance(self.line, tuple) else self.line
        if not self.env:
            return words
        variables = shlex.join(["env", *(f"{name}={value}" for name, value in self.env.items())])
        return f"{variables} {words if isinstance(self.line, tuple) else shlex.join([SHELL, '-c', self.line])}"


def script_of(steps: Sequence[CommandStep]) -> str:
    """A file for `sh`. One that holds a secret removes itself: the shell has it open."""
    text = lines_of(steps)
    return text if redact_text(text) == text else f'rm -f -- "$0"\n{text}'


def lines_of(steps: Sequence[CommandStep]) -> str:
    """For `sh -c`. The first step that fails ends it, with its exit code; the last takes the shell's place."""
    lines = ["set -e"]
    for step in steps:
        last = step is steps[-1] and isinstance(step.line, tuple)
        # In parentheses a line is one command, whatever it holds: `a; b || c` of one step must not end the others.
        text = step.text()
        lines.append(f"exec {text}" if last else text if isinstance(step.line, tuple) else f"(\n{text}\n)")
    return "\n".join(lines) + "\n"
