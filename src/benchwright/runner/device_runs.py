"""Runs on several devices: each has its own queue, and this machine does nothing else while it measures itself."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from benchwright.core.errors import BenchwrightError, Interrupted
from benchwright.core.run import Run
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.kinds.registry import kind_of
from benchwright.results.after_run import exit_code
from benchwright.runner.device_selection import DeviceOrder
from benchwright.runner.device_worker import Said, send_order
from benchwright.runner.run import NodeOrder, RunOrder
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

_LOOK_S = 0.2
_INTERRUPTED = Interrupted.exit_code


class DeviceRun(msgspec.Struct, frozen=True):
    """The run of one device; None: there is none, and `code` is the exit code it would have had."""

    name: str
    run: Run | None
    code: int


def run_on_devices(orders: Sequence[DeviceOrder], observer: Observer) -> list[DeviceRun]:
    """All devices at once, each with its own queue; this machine, if it is one of them, last and alone.

    A device that fails does not stop the others. Raises Interrupted if the user asked to stop.
    """
    ended: dict[str, Said] = {}
    for group in ([o for o in orders if not o.is_here], [o for o in orders if o.is_here]):
        ended |= _run_together(group, observer)
        stopped = [f"{name}: {said.text}" for name, said in ended.items() if said.code == _INTERRUPTED]
        if stopped:
            raise Interrupted("; ".join(stopped))
    return [_read(each.name, ended[each.name]) for each in orders]


def _read(name: str, said: Said) -> DeviceRun:
    if said.what != "run":
        return DeviceRun(name, None, said.code)
    made = read_run(RunFolder(Path(said.text)), kind_of)
    return DeviceRun(name, made, exit_code(made) or said.code)


def _run_together(orders: Sequence[DeviceOrder], observer: Observer) -> dict[str, Said]:
    """The last word of each device."""
    lines: queue.SimpleQueue[tuple[str, Said]] = queue.SimpleQueue()
    workers = [RunProcess(each.name, each.order, lines) for each in orders]
    ended: dict[str, Said] = {}

    def stop() -> None:
        for worker in workers:
            worker.stop()

    with stops_on_signals(stop):
        while len(ended) < len(workers):
            try:
                name, message = lines.get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if message.what in ("run", "error"):
                ended.setdefault(name, message)
            pass_on(observer, name, message)
    for worker in workers:
        worker.close()
    return ended


def pass_on(observer: Observer, name: str, said: Said) -> None:
    """Messages of a worker that concern whoever watches."""
    tellers: dict[str, Callable[[], None]] = {
        "step": lambda: observer.on_step(name, said.text),
        "done": lambda: observer.on_step_done(name, said.text),
        "output": lambda: observer.on_output(name, said.text),
        "note": lambda: observer.on_note(f"{name}: {said.text}"),
        "trouble": lambda: observer.on_trouble(f"{name}: {said.text}"),
        "error": lambda: None if said.code == _INTERRUPTED else observer.on_trouble(f"{name}: {said.text}"),
    }
    if said.what in tellers:
        tellers[said.what]()


class RunProcess:
    """The process that makes the run of one device or node. What it says is put into `lines`."""

    def __init__(self, name: str, order: RunOrder | NodeOrder, lines: queue.SimpleQueue[tuple[str, Said]]) -> None:
        self._name = name
        self._lines = lines
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "benchwright.runner.device_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ),
            start_new_session=True,  # Ctrl-C reaches this process only, which passes it on once
        )
        assert self._process.stdin is not None
        try:
            send_order(order, self._process.stdin)
        except BrokenPipeError:
            pass  # how it ended is known below
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put((self._name, msgspec.json.decode(line, type=Said)))
        code = self._process.wait()
        lost = Said("error", f"its run ended unexpectedly (exit code {code})", BenchwrightError.exit_code)
        self._lines.put((self._name, lost))

    def answer(self, names: Sequence[str]) -> None:
        """The work to measure next; nothing: it is to end."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(names) + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # how it ended is heard of

    def stop(self) -> None:
        """As Ctrl-C does; a second time it ends at once."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def close(self) -> None:
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
