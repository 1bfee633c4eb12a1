"""Scripts on another machine: plain POSIX sh with their data on stdin and stdout."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Protocol

import msgspec

from benchwright.core.errors import CannotMeasure

_LOOK_S = 0.05
_KEPT_BYTES = 1 << 16  # of what a failing script printed
ANSWER = "benchwright answers:"
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded|Wrote only \d+ of \d+ bytes", re.IGNORECASE)


class Shell(Protocol):
    """A way to run programs on a machine. `str()` names it in messages."""

    def words(self, command: Sequence[str]) -> list[str]:
        """The local command that runs `command` there, with its stdin, stdout and exit code."""
        ...

    def ended(self, code: int) -> int:
        """The exit code of the command there, from that of the local one; 255: the connection was lost."""
        ...

    def explain(self, code: int, printed: str) -> str:
        """Why a command failed there, from its exit code and what was printed: names the machine."""
        ...


class ConnectionLost(CannotMeasure):
    """A connection broke in the middle of a transfer."""


class Reply(msgspec.Struct, frozen=True):
    """Output of a script after the line `benchwright answers:`; a login may print anything before it."""

    text: bytes

    @property
    def lines(self) -> list[str]:
        return self.text.decode(errors="surrogateescape").splitlines()


def ask(
    shell: Shell,
    script: str,
    *arguments: str,
    feed: Callable[[IO[bytes]], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    limit_s: float | None = None,
    what: str = "it was asked something",
) -> Reply:
    """Run a script there and return its answer. `feed` writes its input, in a thread.

    Raises ConnectionLost, with how far it came, if the connection breaks, and CannotMeasure if the script fails.
    """
    words = shell.words(["sh", "-c", script, "sh", *arguments])
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complaints:
        process = _start(words, printed, complaints, has_input=feed is not None)
        feeder = _Feeder(process, feed) if feed is not None else None
        _wait(process, stopped, None if limit_s is None else time.monotonic() + limit_s)
        if feeder is not None:
            feeder.join()
        complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - _KEPT_BYTES))
        said = complaints.read().decode(errors="replace")
        if feeder is not None and feeder.error is not None:
            raise feeder.error
        if (code := shell.ended(process.returncode)) != 0:
            raise _failure(shell, code, said, what)
        printed.seek(0)
        _, found, answer = printed.read().partition(ANSWER.encode() + b"\n")
    if not found:
        raise CannotMeasure(f"{shell}: it gave no answer when {what}; its login may run something else than a shell")
    return Reply(answer)


def fetch(
    shell: Shell,
    script: str,
    *arguments: str,
    take: Callable[[IO[bytes]], None],
    stopped: Callable[[], bool] = lambda: False,
    what: str = "files were fetched",
) -> None:
    """Run a script there and give its output, as it comes, to `take`. Raises as `ask` does, even if `take` was satisfied."""
    words = shell.words(["sh", "-c", script, "sh", *arguments])
    with tempfile.TemporaryFile() as complaints:
        process = _start(words, subprocess.PIPE, complaints, has_input=False)
        assert process.stdout is not None
        watch = threading.Thread(target=_wait, args=(process, stopped, None), daemon=True)
        watch.start()
        error: BaseException | None = None
        try:
            take(process.stdout)
        except Exception as found:  # kept: how the connection ended explains it better
            error = found
        process.stdout.close()
        watch.join()
        complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - _KEPT_BYTES))
        said = complaints.read().decode(errors="replace")
    code = shell.ended(process.returncode)
    if code != 0 and (error is None or code != -13):
        raise _failure(shell, code, said, what)
    if error is not None:
        raise CannotMeasure(f"{shell}: what came back cannot be used: {error}") from error


class _Feeder:
    """Writes the input of a process; a process that no longer reads is no error here, since its exit code says why."""

    def __init__(self, process: subprocess.Popen[bytes], feed: Callable[[IO[bytes]], None]) -> None:
        self.error: CannotMeasure | None = None
        self._feed = feed
        self._process = process
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        assert self._process.stdin is not None
        try:
            self._feed(self._process.stdin)
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        except CannotMeasure as error:
            self.error = error
            self._process.kill()
        except OSError as error:
            self.error = CannotMeasure(f"{error.filename or 'a file'} cannot be sent: {error.strerror or error}")
            self._process.kill()

    def join(self) -> None:
        self._thread.join()
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                pass  # what was buffered could not be sent


def _start(
    words: list[str], printed: IO[bytes] | int, complaints: IO[bytes], *, has_input: bool
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=printed,
            stderr=complaints,
            start_new_session=True,  # Ctrl-C reaches only the main process
        )
    except OSError as error:
        raise CannotMeasure(f"{words[0]} could not be started: {error.strerror}; install {words[0]}") from error


def _wait(process: subprocess.Popen[bytes], stopped: Callable[[], bool], deadline: float | None) -> None:
    while True:
        try:
            process.wait(_LOOK_S)
            return
        except subprocess.TimeoutExpired:
            if stopped() or (deadline is not None and time.monotonic() > deadline):
                process.kill()


def _failure(shell: Shell, code: int, said: str, what: str) -> CannotMeasure:
    if _NO_SPACE.search(said):
        return CannotMeasure(
            f"{shell}: its disk is full; free some space there, or choose another folder with --remote-dir"
        )
    if code in (255, -9, -15):
        return ConnectionLost(f"the connection to {shell} was lost while {what}: {shell.explain(code, said)}")
    return CannotMeasure(f"{shell.explain(code, said)} (while {what})")
