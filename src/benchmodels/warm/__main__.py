"""`python -m benchmodels.warm torch …`: imports these modules, then forks a process for each order on descriptor 3.

It never touches a GPU: a process forked from one that has could not use it. Each forked process belongs to whoever adopts
the orphans of this one's children: the supervisor that started it. It then becomes what `python -m benchmodels ARGS` would
be, or executes just that if its script does something before it imports torch.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import mmap
import os
import runpy
import signal
import socket
import sys
import threading
import time
from typing import Any, Dict, FrozenSet, List, NoReturn, Optional

import benchprobe
from benchmodels.warm.pages import Pages, pages_now, take_over
from benchmodels.warm.scripts import why_cold
from benchmodels.zoo.vision_import import declare_operators
from benchmodels.zoo.zoo_loader import OFFLINE

_CONTROL = 3
_FDS = 3  # at most: the program's gate, its log, its data
_LONGEST = 1 << 16
_WITHOUT_CUDA = "PYTORCH_NVML_BASED_CUDA_CHECK"  # then torch.cuda.is_available() does not begin to use CUDA
_PR_SET_PDEATHSIG = 1
_SAVES_TIME = "_imports"  # names of modules that end so only save time: without them programs are forked all the same
# Of ours, what every measurement needs. benchprobe reads its configuration when it is executed: again in each process.
_OURS = (
    *("benchmodels.measure.measure", "benchmodels.measure.jobs", "benchmodels.discover.capture"),
    *("benchmodels.discover.discover", "benchmodels.hooks.bytecode_patch", "benchprobe.loop.probe"),
    *("benchprobe.loop.measured_functions", "benchprobe.loop.loop_pass"),
)
Order = Dict[str, Any]


class Server:
    """Serves the supervisor at the other end of `control` until that closes it."""

    def __init__(self, control: socket.socket, imported: FrozenSet[str], pages: Pages) -> None:
        self._control = control
        self._imported = imported
        self._pages = pages

    def serve(self) -> Optional[List[str]]:
        """Returns in forked processes, with the arguments of their program; in the server itself None, at its end."""
        while True:
            words, fds, _, _ = socket.recv_fds(self._control, _LONGEST, _FDS)
            if not words:
                return None
            answer = self._fork()
            if answer is None:
                self._control.close()
                return self._become_program(fds)
            for fd in fds:
                os.close(fd)
            self._control.send(json.dumps(answer).encode())

    def _fork(self) -> Optional[Dict[str, Any]]:
        """The reply about the new process; None in the new process itself. Its parent ends at once, so it is adopted."""
        pid_read, pid_write = os.pipe()
        try:
            between = os.fork()
            if between == 0:
                _leave_child_behind(pid_write)
                os.close(pid_read)
                os.close(pid_write)
                return None
        except OSError as error:
            os.close(pid_read)
            os.close(pid_write)
            return {"failed": error.strerror}
        os.close(pid_write)
        os.waitpid(between, 0)
        answer = os.read(pid_read, 64)
        os.close(pid_read)
        return {"pid": int(answer)} if answer.isdigit() else {"failed": "no process could be forked"}

    def _become_program(self, fds: List[int]) -> List[str]:
        gate = socket.socket(fileno=fds[0])
        order = _read_order(gate)
        stage = "session"
        try:
            os.setsid()
            _end_with(order["supervisor"])
            stage = "files"
            _arrange(fds[1], fds[2] if len(fds) > 2 else None)
            stage = "cwd"
            os.chdir(order["cwd"])
        except OSError as error:
            _tell(gate, failed=[stage, error.errno])
            os._exit(127)
        os.environ.update(order["env"])
        arguments: List[str] = order["argv"][3:]  # after `python -m benchmodels`
        why = why_cold(arguments[0], self._imported) if arguments else None
        if why is not None:
            _execute(gate, order["argv"], why)
        take_over(self._pages)
        importlib.reload(benchprobe)
        _forget_random_numbers()
        _tell(gate, **_clocks())
        gate.close()
        return arguments


def _leave_child_behind(pid_write: int) -> None:
    """Returns in the child of this process; this process ends."""
    try:
        child = os.fork()
        if child == 0:
            return
        os.write(pid_write, str(child).encode())
    except OSError:
        os._exit(1)
    os._exit(0)


def _read_order(gate: socket.socket) -> Order:
    with gate.makefile("rb") as file:
        line = file.readline()
    if not line.endswith(b"\n"):
        os._exit(1)  # the supervisor is gone
    order: Order = json.loads(line)
    return order


def _end_with(supervisor: int) -> None:
    """Has the kernel kill this process when its supervisor ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(1)


def _arrange(log: int, data: Optional[int]) -> None:
    for fd in (1, 2):
        os.dup2(log, fd)
    os.close(log)
    if data is not None:
        os.dup2(data, _CONTROL)
        if data != _CONTROL:
            os.close(data)


def _execute(gate: socket.socket, argv: List[str], why: str) -> NoReturn:
    """Begins again, as a fresh interpreter."""
    gate.set_inheritable(False)
    with open("/proc/self/statm") as file:  # Linux: nowhere else are programs forked like this
        rss_bytes = int(file.read().split()[1]) * mmap.PAGESIZE
    _tell(gate, cold=why, rss_bytes=rss_bytes, **_clocks())
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
    os._exit(127)


def _tell(gate: socket.socket, **values: Any) -> None:
    gate.sendall(json.dumps(values).encode() + b"\n")


def _clocks() -> Dict[str, int]:
    return {"cpu_ns": time.process_time_ns(), "began_ns": time.perf_counter_ns()}


def _forget_random_numbers() -> None:
    """Seeds numpy again; Python's own generator does so after a fork, and torch begins with the same seed in any process."""
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()


def load(names: List[str]) -> Optional[str]:
    """Imports them; returns what speaks against forking afterwards."""
    added = _WITHOUT_CUDA not in os.environ
    if added:
        os.environ[_WITHOUT_CUDA] = "1"
    try:
        for variable, value in OFFLINE.items() if "benchmodels.zoo.zoo_loader" in names else ():
            os.environ.setdefault(variable, value)  # libraries read them when they are imported
        for name in (*names, *_OURS):
            if name in ("torchvision", "timm"):
                declare_operators()  # as their zoos do
            importlib.import_module(name)
    except Exception as error:  # reported; the program is then started afresh
        return f"{name} cannot be imported: {type(error).__name__}: {error}"
    finally:
        if added:
            os.environ.pop(_WITHOUT_CUDA, None)
    if any("/dev/nvidia" in path or "/dev/kfd" in path for path in _open_files()):
        return f"importing {', '.join(names)} opens the GPU"
    if threading.active_count() > 1:
        return f"importing {', '.join(names)} starts threads"
    return None


def _open_files() -> List[str]:
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            pass  # the folder's own, closed by now
    return found


def main(names: List[str]) -> Optional[List[str]]:
    """Returns as `serve` does."""
    control = socket.socket(fileno=_CONTROL)
    began = time.perf_counter()
    problem = load(names)
    needed = [name for name in names if not name.endswith(_SAVES_TIME)]
    if problem is not None and needed != names:  # it begins again, so that nothing of what they did remains
        os.execv(sys.executable, [sys.executable, "-m", "benchmodels.warm", *needed])
    if problem is not None:
        control.send(json.dumps({"failed": problem[:2000]}).encode())
        return None
    control.send(json.dumps({"ready": True, "seconds": round(time.perf_counter() - began, 3)}).encode())
    return Server(control, frozenset(names), pages_now()).serve()


if __name__ == "__main__":
    _words = main(sys.argv[1:])
    if _words is not None:
        sys.argv = ["benchmodels", *_words]
        runpy.run_module("benchmodels", run_name="__main__", alter_sys=True)
