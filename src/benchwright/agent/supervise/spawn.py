"""Starts the measured program: its own session, no stdin, output to a file, its cores, killed if we die.

All our work happens before exec, and the child reads the clocks right before that call: the program's time begins there,
and CPU time spent before is not the program's.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import signal
import struct
import sys
import time

from benchwright.agent.processes.family import signal_me_when_parent_dies
from benchwright.agent.processes.process_tree import LINUX, PAGE_BYTES, read_proc, read_stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchwright.core.job import Job

# Python ignores the first two and the agent the third; a program started by a shell would not.
_RESTORED_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


class CannotStart(Exception):
    """The program could not be started; the text says why and what to do."""


class Clocks:
    """Memory shared with the child, for the clocks it reads just before exec."""

    _LAYOUT = struct.Struct("qqq")

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, self._LAYOUT.size)

    def stamp(self) -> None:
        _, waited_ns = read_scheduled("self") or (0, 0)
        self._LAYOUT.pack_into(self._shared, 0, waited_ns, time.process_time_ns(), time.perf_counter_ns())

    def read(self) -> tuple[int, int, int]:
        """Waiting for a core and CPU time before exec, and when exec was called; all in nanoseconds."""
        waited_ns, cpu_ns, began_ns = self._LAYOUT.unpack_from(self._shared)
        return waited_ns, cpu_ns, began_ns

    def close(self) -> None:
        self._shared.close()


def read_scheduled(pid: int | str) -> tuple[int, int] | None:
    """How long the first thread of a process ran, and waited for a core, in nanoseconds; None if the kernel does not say."""
    words = (read_proc(f"/proc/{pid}/schedstat") or b"").split() if LINUX else []
    return (int(words[0]), int(words[1])) if len(words) == 3 else None


class Started:
    """A started program: when it was executed, and the CPU time and memory its process had used before.

    `waited_ns`: for a core, before it was executed; None if that is not known.

    `warm`: it was forked from a process that had imported what it needs, and that memory is its own. `remark`: why it was
    not, if that was asked for.
    """

    __slots__ = ("began_ns", "fork_rss_bytes", "our_cpu_ns", "pid", "remark", "waited_ns", "warm")

    def __init__(self, pid: int, began_ns: int, our_cpu_ns: int, fork_rss_bytes: int) -> None:
        self.pid = pid
        self.began_ns = began_ns
        self.our_cpu_ns = our_cpu_ns
        self.fork_rss_bytes = fork_rss_bytes
        self.waited_ns: int | None = None
        self.warm = False
        self.remark: str | None = None


class ColdStart:
    """Starts each program afresh. `others`: children of this process that are no part of the job."""

    others: frozenset[int] = frozenset()

    def spawn(
        self,
        job: Job,
        environment: Mapping[str, str],
        log_fd: int,
        data_fd: int | None,
        *,
        forked: Callable[[int], None],
        stopped: Callable[[], bool],
    ) -> Started:
        """As `spawn` does. `stopped`: whether we are asked to stop, should it take a while."""
        return spawn(job, environment, log_fd, data_fd, forked)

    def lost(self, pid: int) -> None:
        """One of `others` has ended."""


def spawn(
    job: Job,
    environment: Mapping[str, str],
    log_fd: int,
    data_fd: int | None = None,
    forked: Callable[[int], None] = lambda pid: None,
) -> Started:
    """Start the job's program and return once it has been executed. Raises CannotStart.

    `data_fd` becomes the program's descriptor 3. `forked` gets the pid as soon as there is one: a short program may end
    before this returns.
    """
    argv = ["/bin/sh", "-c", " ".join(job.argv)] if job.shell else list(job.argv)
    if not argv or not argv[0]:
        raise CannotStart("the command is empty; name a program to run")
    check_cores(job.cores)
    supervisor = os.getpid()
    clocks = Clocks()
    # Looked up here: the less the child does before exec, the fresher the program is to the scheduler.
    candidates, environment = _candidates(argv[0], environment), dict(environment)
    before_exec = read_stat(os.getpid()) if LINUX else None
    fork_rss_bytes = before_exec.rss_pages * PAGE_BYTES if before_exec else 0
    failure_read, failure_write = os.pipe()  # closed by a successful exec; otherwise carries the failure
    try:
        pid = os.fork()
    except OSError as error:
        os.close(failure_read)
        os.close(failure_write)
        raise CannotStart(
            f"no process could be started: {error.strerror}; the limit on processes may be reached"
        ) from error
    if pid == 0:
        _become(argv, candidates, environment, job.cwd, job.cores, log_fd, data_fd, failure_write, supervisor, clocks)
    forked(pid)
    os.close(failure_write)
    report = b""
    while part := os.read(failure_read, 4096):
        report += part
    os.close(failure_read)
    if report:
        os.waitpid(pid, 0)
        stage, number = report.decode().split(" ")
        raise CannotStart(explain(stage, int(number), argv[0], job.cwd))
    waited_ns, our_cpu_ns, began_ns = clocks.read()
    clocks.close()
    started = Started(pid, began_ns, our_cpu_ns, fork_rss_bytes)
    started.waited_ns = waited_ns
    return started


def check_cores(cores: Sequence[int] | None) -> None:
    """Raises CannotStart unless this process may use all of `cores`."""
    if cores is None:
        return
    if not hasattr(os, "sched_getaffinity"):
        raise CannotStart(f"{sys.platform} cannot pin a program to cores; leave the cores out")
    allowed = os.sched_getaffinity(0)
    missing = sorted(set(cores) - allowed)
    if missing or not cores:
        raise CannotStart(
            f"cannot pin to core {', '.join(map(str, missing)) or '(none given)'}: it does not exist or may not be used "
            f"here; choose from {', '.join(map(str, sorted(allowed)))}"
        )


def _become(
    argv: list[str],
    candidates: list[str],
    environment: dict[str, str],
    cwd: str,
    cores: Sequence[int] | None,
    log_fd: int,
    data_fd: int | None,
    failure_fd: int,
    supervisor: int,
    clocks: Clocks,
) -> None:
    """In the new process: turn into the program. Never returns."""
    stage = "session"
    try:
        os.setsid()
        for number in _RESTORED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if not signal_me_when_parent_dies(signal.SIGKILL, supervisor):
            os._exit(1)
        stage = "cores"
        if cores is not None:
            os.sched_setaffinity(0, cores)
        stage = "files"
        failure_fd = _arrange_descriptors(log_fd, data_fd, failure_fd)
        stage = "cwd"
        os.chdir(cwd)
        stage = "exec"
        _execute(argv, candidates, environment, clocks)
    except OSError as error:
        os.write(failure_fd, f"{stage} {error.errno}".encode())
    except BaseException:
        os.write(failure_fd, f"{stage} {errno.EINVAL}".encode())
    finally:
        os._exit(127)


def _execute(argv: list[str], candidates: list[str], environment: dict[str, str], clocks: Clocks) -> None:
    """Like `os.execvpe`, but reads the clocks before each attempt. Raises the most informative OSError."""
    failure: OSError | None = None
    for candidate in candidates:
        try:
            clocks.stamp()
            os.execve(candidate, argv, environment)
        except (FileNotFoundError, NotADirectoryError) as error:
            failure = failure or error
        except OSError as error:
            if failure is None or isinstance(failure, FileNotFoundError | NotADirectoryError):
                failure = error
    raise failure or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def _candidates(program: str, environment: Mapping[str, str]) -> list[str]:
    if os.path.dirname(program):
        return [program]
    return [os.path.join(folder, program) for folder in os.get_exec_path(environment)]


def _arrange_descriptors(log_fd: int, data_fd: int | None, failure_fd: int) -> int:
    """0 reads nothing, 1 and 2 append to the log, 3 to the data file if any, 4 reports a failure until exec closes it; no
    others. Returns the last."""
    # Moved out of the way first: any of them may already be one of 0 to 4.
    nothing = os.open(os.devnull, os.O_RDONLY)
    nothing, log_fd, failure_fd = (_move_up(fd) for fd in (nothing, log_fd, failure_fd))
    data_fd = None if data_fd is None else _move_up(data_fd)
    os.dup2(nothing, 0)
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    if data_fd is not None:
        os.dup2(data_fd, 3)
    else:
        os.closerange(3, 4)
    os.dup2(failure_fd, 4, inheritable=False)
    os.closerange(5, os.sysconf("SC_OPEN_MAX"))
    return 4


def _move_up(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)


def explain(stage: str, number: int, program: str, cwd: str) -> str:
    """Why a program could not be started: what failed, and the number of the error."""
    reason = os.strerror(number)
    if stage == "cwd":
        return f"the folder {cwd} cannot be entered: {reason}; create it or choose another"
    if stage != "exec":
        return f"the program's {stage} could not be set up: {reason}"
    if number == errno.ENOENT:
        return _explain_missing(program, cwd)
    if number == errno.EACCES:
        start = f"write python {program}" if program.endswith(".py") else "put its interpreter in front"
        return f"'{program}' may not be executed: {reason}; run chmod +x on it or {start}"
    if number == errno.ENOEXEC:
        return f"'{program}' is not a program; give it a #! line or put its interpreter in front"
    if number == errno.E2BIG:
        return f"'{program}' could not be started: its arguments and environment are too long; pass them in a file"
    return f"'{program}' could not be started: {reason}"


def _explain_missing(program: str, cwd: str) -> str:
    if "/" not in program and os.path.isfile(os.path.join(cwd, program)):
        line = f"python {program}" if program.endswith(".py") else f"./{program}"
        return f"command '{program}' was not found on PATH; to run the file of this folder, write {line}"
    if "/" not in program:
        return f"command '{program}' was not found on PATH; check its spelling or give its path"
    if os.path.exists(os.path.join(cwd, program)):
        return f"'{program}' exists but the interpreter in its first line does not; install it or correct the line"
    return f"'{program}' does not exist (looked from {cwd}); check its path"
