"""The operations of a board. `BoardExecutor` turns jobs into these calls; a new way to reach boards implements `Board`.

    with board:
        board.properties()
        board.push({f"{board.folder}/prog": "/here/prog"})
        board.run(BoardCommand(argv=(f"{board.folder}/prog",), cwd=board.folder), output, stopped)
        board.pull(f"{board.folder}/out", "/here/out")

Paths on a board are absolute and POSIX. Everything of one run lies below `folder`, which is removed when the board is closed.
Every variant passes tests/contracts/test_board_contract.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Protocol, Self

import msgspec

from benchwright.core.machine import Machine

# Bytes sent so far, and in all.
Progress = Callable[[int, int], None]


class BoardProperties(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a board before anything is sent. `free_bytes`: in its folder; None: unknown."""

    machine: Machine
    free_bytes: int | None = None
    can_pin: bool = False  # whether programs can be kept on chosen cores


class BoardCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run. `env` holds changes to the environment there; None removes a variable."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str | None] = {}
    cores: tuple[int, ...] | None = None
    timeout_s: float | None = None
    grace_s: float = 5.0  # between TERM and KILL


class BoardExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended. `exit_code` None: a signal ended it, it never started, or the board was lost (see `detail`)."""

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = False
    lost: bool = False  # the board went away; whether the program still runs is unknown
    duration_s: float = 0.0  # by the board's own clock, where it has one that is fine enough
    resolution_s: float = 0.0  # of that clock
    detail: str | None = None


class BoardOutput:
    """Takes what a program prints while it runs; called from any thread. Override the methods of interest."""

    def started(self, pid: int) -> None:
        """The program runs, with this process id on the board."""

    def stdout(self, data: bytes) -> None:
        """It printed this."""

    def stderr(self, data: bytes) -> None:
        """It printed this on stderr."""

    def note(self, text: str) -> None:
        """Something a reader of the results should know."""


class Board(Protocol):
    """A board in use. Errors that stop everything are CannotMeasure, with a remedy."""

    @property
    def name(self) -> str:
        """As in messages: `board 'pi' (alice@10.0.0.7)`."""
        ...

    @property
    def folder(self) -> str:
        """The folder of this run on the board. Known once the board is open."""
        ...

    def __enter__(self) -> Self:
        """Connects and makes `folder`."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends what still runs and removes `folder`. Raises nothing if the board is gone."""
        ...

    def properties(self) -> BoardProperties:
        """Its facts; asked once."""
        ...

    def push(
        self, files: Mapping[str, str], progress: Progress | None = None, without: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Send files and folders: path there → path here. What is there already and unchanged is not sent again.
        `without`: paths here that are left out.

        Modes and links are kept; links that leave a folder are replaced by what they point to. All contents are verified.
        Returns what a user should know. Raises CannotMeasure: nothing half-sent is ever taken for whole.
        """
        ...

    def run(self, command: BoardCommand, output: BoardOutput, stopped: Callable[[], bool]) -> BoardExit:
        """Run a program to its end. It and its descendants are ended at the timeout, when `stopped` says so, and when the
        connection is lost. A program that fails is a BoardExit, not an exception."""
        ...

    def pull(self, there: str, here: str) -> None:
        """Bring a file or folder back, whole or not at all; CannotMeasure if it is not there."""
        ...

    def remove(self, there: str) -> None:
        """Remove a file or folder below `folder`; nothing happens if it is not there."""
        ...
