"""Our own processes: finds the descendants of one, and signals them and nothing else.

On Linux everything is read from /proc directly, which is several times cheaper than psutil; elsewhere psutil serves.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LINUX = sys.platform == "linux"
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MARKER = "BENCHWRIGHT_JOB"  # in the environment of every process that benchwright starts


class ProcessStat:
    """One process as /proc/<pid>/stat shows it; `pid` and `start_ticks` together identify it for good."""

    __slots__ = tuple("cpu_ticks group parent pid reaped_ticks rss_pages session start_ticks state threads".split())

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.state = fields[0].decode()
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.cpu_ticks = int(fields[11]) + int(fields[12])
        self.reaped_ticks = int(fields[13]) + int(fields[14])  # of children it waited for
        self.threads = int(fields[17])
        self.start_ticks = int(fields[19])
        self.rss_pages = int(fields[21])

    @property
    def ended(self) -> bool:
        """It is a zombie: only its exit status is left."""
        return self.state in "ZX"


def read_proc(path: str) -> bytes | None:
    """A file in /proc; None if the process is gone or hidden."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 65536)
        # A read may stop just short of a page; anything clearly smaller is complete.
        while len(data) > 3000 and (more := os.read(fd, 65536)):
            data += more
        return data
    except OSError:
        return None
    finally:
        os.close(fd)


def read_stat(pid: int) -> ProcessStat | None:
    """The process `pid` now, or None if there is none."""
    data = read_proc(f"/proc/{pid}/stat")
    if not data:
        return None
    return ProcessStat(pid, data[data.rindex(b")") + 2 :].split())


def descendants(root: int, spare: frozenset[int] = frozenset()) -> list[ProcessStat]:
    """Every descendant of `root` except those in `spare` and below, zombies included; parents before children."""
    if not LINUX:
        return _without(_descendants_by_psutil(root), spare)
    if _children_of(root, threads=1) is None:
        return _without(_descendants_by_scan(root), spare)
    found: list[ProcessStat] = []
    parents = [(root, 2)]  # an unknown number of threads counts as "several"
    while parents:
        pid, threads = parents.pop()
        for child in _children_of(pid, threads) or ():
            stat = None if child in spare else read_stat(child)
            if stat is not None:
                found.append(stat)
                parents.append((child, stat.threads))
    return found


def _without(found: list[ProcessStat], spare: frozenset[int]) -> list[ProcessStat]:
    """`found`, parents before children, without those in `spare` and below."""
    skipped = set(spare)
    kept = []
    for stat in found:
        if stat.pid in skipped or stat.parent in skipped:
            skipped.add(stat.pid)
        else:
            kept.append(stat)
    return kept


def _children_of(pid: int, threads: int) -> list[int] | None:
    """Children of `pid`; None if it is gone or the kernel does not keep such lists."""
    if threads == 1:
        data = read_proc(f"/proc/{pid}/task/{pid}/children")
        return None if data is None else [int(word) for word in data.split()]
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return None
    children: list[int] = []
    for task in tasks:
        data = read_proc(f"/proc/{pid}/task/{task}/children")
        if data:
            children.extend(int(word) for word in data.split())
    return children


def all_processes() -> list[ProcessStat]:
    """Every visible process of the machine. Costly: for rare occasions only."""
    return [stat for stat in map(read_stat, all_pids()) if stat is not None]


def all_pids() -> list[int]:
    """The number of every process of the machine that can be seen."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _descendants_by_scan(root: int) -> list[ProcessStat]:
    by_parent: dict[int, list[ProcessStat]] = {}
    for stat in all_processes():
        by_parent.setdefault(stat.parent, []).append(stat)
    found: list[ProcessStat] = []
    parents = [root]
    while parents:
        children = by_parent.pop(parents.pop(), [])
        found += children
        parents += [child.pid for child in children]
    return found


def _descendants_by_psutil(root: int) -> list[ProcessStat]:
    import psutil

    found = []
    for process in psutil.Process(root).children(recursive=True):
        try:
            with process.oneshot():
                times, memory = process.cpu_times(), process.memory_info()
                state = b"Z" if process.status() == psutil.STATUS_ZOMBIE else b"S"
                fields = [b"0"] * 22
                fields[0], fields[1] = state, str(process.ppid()).encode()
                fields[2], fields[3] = str(os.getpgid(process.pid)).encode(), str(os.getsid(process.pid)).encode()
                fields[11] = str(int((times.user + times.system) * TICKS_PER_S)).encode()
                fields[19] = str(int(process.create_time() * TICKS_PER_S)).encode()
                fields[21] = str(memory.rss // PAGE_BYTES).encode()
                found.append(ProcessStat(process.pid, fields))
        except (psutil.Error, OSError):
            continue
    return found


def send_signal(target: ProcessStat, number: int) -> bool:
    """Signal exactly this process, never another that has its pid by now. False: it is gone."""
    handle = None
    try:
        handle = _open_handle(target.pid)  # from here on the pid cannot change hands
        now = read_stat(target.pid) if LINUX else target
        if now is None or now.start_ticks != target.start_ticks:
            return False
        if handle is not None:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(target.pid, number)
        return True
    except OSError:
        return False
    finally:
        if handle is not None:
            os.close(handle)


def _open_handle(pid: int) -> int | None:
    """None where the system has no such call."""
    try:
        return os.pidfd_open(pid) if LINUX else None
    except OSError as error:
        if error.errno == errno.ENOSYS:
            return None
        raise


def signal_descendants(root: int, number: int, spare: frozenset[int] = frozenset()) -> list[ProcessStat]:
    """Signal every living descendant of `root` except those in `spare` and below; returns whom."""
    targets = [stat for stat in descendants(root, spare) if not stat.ended]
    # A group is signalled at once, which stops even one that forks faster than we can list it. All groups here
    # were made inside our sessions, so they hold only our descendants; our own is left out.
    own = os.getpgid(0)
    for group in {stat.group for stat in targets} - {own}:
        _signal_group(group, number)
    for stat in targets:
        if stat.group == own:
            send_signal(stat, number)
    return targets


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        pass


def kill_all(find: Callable[[], list[ProcessStat]], limit_s: float) -> None:
    """Kill what `find` finds, repeatedly, until it finds nothing alive or time is up."""
    deadline = time.monotonic() + limit_s
    while left := [stat for stat in find() if not stat.ended]:
        for stat in left:
            send_signal(stat, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.02)
