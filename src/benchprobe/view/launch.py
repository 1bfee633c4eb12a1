"""Runs a script as a child process with the probe on, and shows what its stream says."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from benchprobe.config import VARIABLE
from benchprobe.view.dashboard import Memory, status, table, title
from benchprobe.view.summary import StreamSummary

DRAW_INTERVAL_S = 0.2
LINE_INTERVAL_S = 2.0
AFTER_END_S = 0.5  # how long to keep reading if a grandchild holds the stream open
F_SETPIPE_SZ = 1031


class ScriptRun(NamedTuple):
    """`command` follows the interpreter; `config` is the probe's, without the stream."""

    command: List[str]
    config: Dict[str, Any]
    stream: Optional[str]
    as_json: bool


def run(launch: ScriptRun) -> int:
    """Runs it, shows the summary on stderr, and returns the child's exit code (128 + its signal)."""
    terminal = sys.stdout.isatty() and sys.stderr.isatty()
    master, slave = _raw_terminal() if terminal else (None, None)
    folder = tempfile.mkdtemp(prefix="benchprobe-")
    try:
        pipe = _named_pipe(os.path.join(folder, "stream"))
        options: List[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()  # -O, -W, -X… as given to us
        command = [sys.executable, *options, *launch.command]
        environment = _environment(launch.config, Path(folder))
        child = subprocess.Popen(command, env=environment, stdout=slave, stderr=slave)
        if slave is not None:
            os.close(slave)
        return _Watch(launch, child, pipe, master).until_the_end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _named_pipe(path: str) -> Tuple[int, int]:
    """Its reading end, and a writing end that keeps it open. Named, for processes that inherit no descriptors (torchrun)."""
    os.mkfifo(path, 0o600)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(path, os.O_WRONLY)
    os.set_blocking(reader, True)
    with suppress(OSError):  # an unprivileged user may be near their limit
        fcntl.fcntl(writer, F_SETPIPE_SZ, 1 << 20)
    return reader, writer


def _raw_terminal() -> Tuple[int, int]:
    """A terminal for the child, as large as ours, that passes bytes on unchanged."""
    master, slave = pty.openpty()
    settings = termios.tcgetattr(slave)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(slave, termios.TCSANOW, settings)
    _copy_size(master)
    return master, slave


def _copy_size(master: int) -> None:
    with suppress(OSError):
        size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(master, termios.TIOCSWINSZ, size)


def _environment(config: Dict[str, Any], folder: Path) -> Dict[str, str]:
    environment = dict(os.environ)
    environment[VARIABLE] = json.dumps({**config, "stream": str(folder / "stream")})
    package = Path(__file__).resolve().parent.parent
    if str(package.parent) not in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        path = folder / "path"
        path.mkdir()
        (path / "benchprobe").symlink_to(package)  # nothing else may get onto the path
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(path), os.environ.get("PYTHONPATH"))))
    return environment


class _Watch:
    """Passes the child's output on, reads its stream, and draws."""

    def __init__(
        self, launch: ScriptRun, child: subprocess.Popen[bytes], pipe: Tuple[int, int], master: Optional[int]
    ) -> None:
        self._launch, self._child, self._master = launch, child, master
        self._reader: Optional[int] = pipe[0]
        self._writer = pipe[1]
        self._terminal = master is not None
        self._summary = StreamSummary()
        self._memory = Memory(child.pid)
        self._began = time.monotonic()
        self._rest = b""
        self._copy = open(launch.stream, "ab") if launch.stream else None  # noqa: SIM115 open to the end
        self._at_line_start, self._drawn = True, False
        self._next_draw = self._began + (DRAW_INTERVAL_S if self._terminal else LINE_INTERVAL_S)

    def until_the_end(self) -> int:
        ended: Optional[float] = None
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._pass_on)
        if self._master is not None:
            signal.signal(signal.SIGWINCH, lambda *_: _copy_size(self._master or 0))
        while self._reader is not None or self._master is not None:
            self._read_once()
            self._memory.look()
            self._draw_if_due()
            if ended is None and self._child.poll() is not None:
                ended = time.monotonic()
                os.close(self._writer)
            if ended is not None and time.monotonic() - ended > AFTER_END_S:
                break
        code = self._child.wait()
        if self._copy is not None:
            self._copy.close()
        self._erase()
        self._show_summary(code)
        return code if code >= 0 else 128 - code

    def _pass_on(self, number: int, frame: Any) -> None:
        # A terminal sends Ctrl-C to the child itself; a second one would interrupt its shutdown.
        streams = (sys.stdin, sys.stdout, sys.stderr)
        if number != signal.SIGINT or not any(stream is not None and stream.isatty() for stream in streams):
            self._child.send_signal(number)

    def _read_once(self) -> None:
        sources = [fd for fd in (self._reader, self._master) if fd is not None]
        for fd in select.select(sources, [], [], 0.1)[0]:
            try:
                data = os.read(fd, 1 << 16)
            except OSError:  # the other side of the terminal is closed
                data = b""
            if fd == self._master:
                self._forward(data)
            else:
                self._take_events(data)

    def _forward(self, data: bytes) -> None:
        if not data:
            self._master = None
            return
        self._erase()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        self._at_line_start = data.endswith(b"\n")

    def _take_events(self, data: bytes) -> None:
        if not data:
            self._reader = None
            return
        if self._copy is not None:
            self._copy.write(data)
            self._copy.flush()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue  # cut off: the process was killed
            self._summary.add(event)

    def _draw_if_due(self) -> None:
        now = time.monotonic()
        if now < self._next_draw:
            return
        goal = self._launch.config.get("stop", {}).get("steps")
        if not self._terminal:
            self._next_draw = now + LINE_INTERVAL_S
            print(self._status(goal, 80), file=sys.stderr, flush=True)
        elif self._at_line_start:
            self._next_draw = now + DRAW_INTERVAL_S
            width = min(shutil.get_terminal_size((80, 24)).columns - 3, 120)  # leaves room for ^C
            sys.stderr.write("\r\x1b[K" + self._status(goal, width))
            sys.stderr.flush()
            self._drawn = True

    def _status(self, goal: Optional[int], width: int) -> str:
        return status(self._summary, time.monotonic() - self._began, self._memory.now_bytes, goal, width)

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False

    def _show_summary(self, code: int) -> None:
        elapsed_s = time.monotonic() - self._began
        peak = self._memory.peak_bytes
        if self._launch.as_json:
            figures = {"exit_code": code, "elapsed_s": elapsed_s, "peak_bytes": peak, "lost": self._summary.lost}
            loops = [loop.as_dict() for loop in self._summary.loops]
            print(json.dumps({**figures, "loops": loops, "messages": self._summary.messages}), file=sys.stderr)
            return
        if not self._at_line_start:
            print(file=sys.stderr)
        ended = f"was killed by signal {-code}" if code < 0 else f"ended with {code}" if code else "finished"
        first, *others = self._launch.command
        script = f"-m {others[0]}" if first == "-m" else os.path.basename(first)
        for line in table(self._summary, title(script, ended, elapsed_s, peak)):
            print(line, file=sys.stderr)
