"""Runs installers: their output goes to a log, and they never outlive benchwright."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence

# In the child, before it becomes the tool: the kernel kills it when the thread that started it ends.
_DIE_WITH_PARENT = """\
import os, signal, sys
parent = int(sys.argv[1])
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)
except (AttributeError, ImportError, OSError):
    pass
if os.getppid() != parent:
    sys.exit(1)
try:
    os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.exit(f"error: {sys.argv[2]}: {error.strerror}")
"""


class Stopped(Exception):
    """Benchwright was asked to stop while a tool ran."""


class Tools:
    """Starts tools from any thread; `stop` ends running ones and all they started, and refuses new ones."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may call `stop` during `run`
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def is_stopped(self) -> bool:
        return self._stopped

    def run(
        self,
        argv: Sequence[str],
        *,
        log: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        keep_open: Sequence[int] = (),
    ) -> int:
        """The tool's exit code; what it prints is appended to `log`. `keep_open`: descriptors it inherits."""
        wrapped = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *argv]
        with open(log, "ab") as output:
            output.write(f"$ {' '.join(argv)}\n".encode())
            output.flush()
            with self._lock:
                if self.is_stopped():
                    raise Stopped
                tool = subprocess.Popen(
                    wrapped,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=None if env is None else dict(env),
                    cwd=cwd,
                    start_new_session=True,  # Ctrl-C reaches only benchwright, which ends its tools itself
                    pass_fds=tuple(keep_open),
                )
                self._running.add(tool)
        if self.is_stopped():
            self.stop()
        try:
            code = tool.wait()
        finally:
            with self._lock:
                self._running.discard(tool)
        if self.is_stopped():
            raise Stopped
        return code

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for tool in running:
            if tool.poll() is None:
                try:
                    os.killpg(tool.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
