"""Runs a foreign benchfile.py in a separate process: what it sets, which processes its run plan starts, or its own way to
install and prepare, whose actions are asked of us one by one."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput

_RUNNER = Path(__file__).parent / "compat_modules" / "run_benchfile.py"
TIME_LIMIT_S = 60.0  # of its own work; what it asks us to do takes as long as it takes
_LONGEST_ANSWER = 1 << 24
_IMPORT_ELSEWHERE = "a benchfile runs in benchwright's own environment: import this in the benchmark's scripts"
_TAIL = 2000  # characters of what it printed that an error shows


class Action(msgspec.Struct, frozen=True):
    """An action that a benchfile asks for: `do` is requirements, pip, conda or execute."""

    do: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str | None] = {}


class PlannedProcess(msgspec.Struct, frozen=True):
    """One process of a run plan. `argv` may hold placeholders and `VOIR_CONFIG`."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str | None]
    tag: tuple[str, ...]
    devices: tuple[int, ...] = ()
    device: int | None = None
    job: int | None = None
    use_stdout: bool | None = None
    node_name: str | None = None
    node_rank: int | None = None
    role: str | None = None  # client or server
    sequence: int | None = None

    @property
    def logs(self) -> bool:
        """Whether data is expected of it."""
        return "nolog" not in self.tag


VOIR_CONFIG = "@voir-config@"  # as in compat_modules/milabench/commands/nodes.py
Perform = Callable[[Action], int]
Fill = Callable[[str], str]


def ask_benchfile(
    path: str, phase: str, request: Mapping[str, Any], perform: Perform | None = None, fill: Fill = str
) -> dict[str, Any]:
    """Its answer. InvalidInput names the file and the line where it fails, is silent for too long or answers nonsense;
    what `perform` and `fill`, which fills the placeholders of a word, raise ends it."""
    with tempfile.TemporaryFile() as printed, _started(path, printed) as child:
        assert child.stdout is not None
        lines = _Lines(child.stdout.fileno())
        _send(child, {"benchfile": path, "phase": phase, **request})
        while True:
            answer = _decoded(path, phase, lines, printed)
            if "fill" in answer:
                _send(child, {"text": fill(str(answer["fill"]))})
            elif "do" in answer:
                code = perform(msgspec.convert(answer, Action)) if perform is not None else 0
                _send(child, {"return_code": code})
            else:
                break
    if "error" in answer:
        raise _failure(path, phase, answer)
    return answer


def _failure(path: str, phase: str, answer: Mapping[str, Any]) -> InvalidInput:
    line = answer.get("line")
    if answer.get("unknown"):
        what = f"it uses {answer['unknown']}, which benchwright does not know"
        return InvalidInput(
            what, where=path, line=line, remedy="say how to run it with `launcher:` or `main:` in its entry"
        )
    what = f"its {phase} failed" if phase != "about" else "running it to read its attributes failed"
    remedy = _IMPORT_ELSEWHERE if answer["error"].startswith("ModuleNotFoundError") else "fix it there"
    return InvalidInput(f"{what}: {answer['error']}", where=path, line=line, remedy=remedy)


@contextlib.contextmanager
def _started(path: str, printed: Any) -> Any:
    """The process, in a separate session that ends with it: a benchfile may fork."""
    command = [sys.executable, "-B", str(_RUNNER)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": printed}
    with subprocess.Popen(command, cwd=os.path.dirname(path), start_new_session=True, **pipes) as child:
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def _send(child: subprocess.Popen[bytes], message: Mapping[str, Any]) -> None:
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended: its answer says why, or that there is none
        child.stdin.write(json.dumps(message).encode() + b"\n")
        child.stdin.flush()


def _decoded(path: str, phase: str, lines: _Lines, printed: Any) -> dict[str, Any]:
    try:
        answer = json.loads(lines.read(TIME_LIMIT_S))
    except TimeoutError:
        raise InvalidInput(
            f"its {phase} took longer than {TIME_LIMIT_S:g} s",
            where=path,
            remedy="let it plan only; scripts do the work",
        ) from None
    except ValueError:
        printed.seek(max(0, printed.seek(0, os.SEEK_END) - _TAIL))
        said = printed.read().decode("utf-8", "replace").strip()
        raise InvalidInput(
            f"its {phase} gave no answer{': ' + said if said else ''}", where=path, remedy="fix it there"
        ) from None
    if not isinstance(answer, dict):
        raise InvalidInput(f"its {phase} gave {answer!r:.60}", where=path, remedy="fix it there")
    return answer


class _Lines:
    """Lines of a pipe, each within a time limit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = b""

    def read(self, limit_s: float) -> bytes:
        """The next line, or what there is at the end."""
        deadline = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._descriptor, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                part = os.read(self._descriptor, 1 << 16)
                self._pending += part
                if not part or len(self._pending) > _LONGEST_ANSWER:
                    break
        line, _, self._pending = self._pending.partition(b"\n")
        return line
