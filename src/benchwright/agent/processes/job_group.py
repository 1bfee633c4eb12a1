"""A control group for all that an agent starts, if one can be created: no process can leave it unnoticed.

Only with cgroups v2, and only if the program cannot notice: no controller is delegated, and our own group has no limit that
would be hidden from it. Otherwise there is still the mark in each process's environment (`leftovers`).
"""

from __future__ import annotations

import errno
import os
import re
import signal
import time

from benchwright.agent.processes.kernel import list_folder, read_text

TOKEN = re.compile(r"\d+-[0-9a-f]{15,16}")
_MOUNTS = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
_EMPTY_S = 0.5
_LIMITS = ("cpu.max", "memory.max", "memory.high", "cpuset.cpus", "pids.max")


class AgentMark:
    """Identifies everything an agent starts: `token` is in its environment; `group` is its control group, if any."""

    __slots__ = ("group", "token")

    def __init__(self, token: str, group: str | None) -> None:
        self.token = token
        self.group = group


def enter(token: str) -> str | None:
    """Move this process into a new group, and return its folder; None if that is impossible."""
    parent = _own_folder()
    if parent is None or not TOKEN.fullmatch(token) or not _is_plain(parent):
        return None
    _remove_empty(parent)
    folder = f"{parent}/benchwright-{token}"
    try:
        os.mkdir(folder)
        _write(f"{folder}/cgroup.procs", "0")
    except OSError:
        remove(folder)
        return None
    return folder


def leave(folder: str | None) -> None:
    """Move this process out again, and remove the group, which is then empty."""
    if folder is None:
        return
    try:
        _write(f"{os.path.dirname(folder)}/cgroup.procs", "0")
    except OSError:
        pass
    remove(folder)


def members(folder: str | None, token: str) -> list[int]:
    """The pids in it and in groups below; none if it is not that agent's group."""
    if folder is None or not _is_ours(folder, token):
        return []
    return [int(pid) for below, _, _ in os.walk(folder) for pid in (read_text(f"{below}/cgroup.procs") or "").split()]


def kill(folder: str | None, token: str) -> None:
    """Kill all at once, which even a fork bomb cannot escape; on older kernels one by one."""
    if folder is None or not _is_ours(folder, token):
        return
    try:
        _write(f"{folder}/cgroup.kill", "1")
    except OSError:
        for pid in members(folder, token):
            try:
                os.kill(pid, signal.SIGKILL)  # in the group a moment ago, and its pid is not reused that fast
            except OSError:
                pass


def _remove_empty(parent: str) -> None:
    """Removes groups of agents that were killed with all they had started. The kernel refuses if one is in use; an empty
    group of an agent that has just started is spared, since its main process lives."""
    for name in list_folder(parent):
        token = name.removeprefix("benchwright-")
        if token != name and not os.path.exists(f"/proc/{token.partition('-')[0]}"):
            _is_removed(f"{parent}/{name}")


def remove(folder: str | None) -> None:
    """Removes the group and those below it, if they are empty or become so soon."""
    if folder is None:
        return
    deadline = time.monotonic() + _EMPTY_S
    for below, _, _ in os.walk(folder, topdown=False):
        while not _is_removed(below) and time.monotonic() < deadline:
            time.sleep(0.005)


def _is_removed(folder: str) -> bool:
    """True also if it never can be. A killed process stays in its group for a moment."""
    try:
        os.rmdir(folder)
    except OSError as error:
        return error.errno != errno.EBUSY
    return True


def _is_ours(folder: str, token: str) -> bool:
    """The path was read from a file: accept only a group made by benchwright."""
    inside = folder.startswith("/sys/fs/cgroup/") and ".." not in folder.split("/")
    return inside and bool(TOKEN.fullmatch(token)) and os.path.basename(folder) == f"benchwright-{token}"


def _own_folder() -> str | None:
    for line in (read_text("/proc/self/cgroup") or "").splitlines():
        if line.startswith("0::/"):
            path = line.removeprefix("0::").rstrip("/")
            return next((mount + path for mount in _MOUNTS if os.path.exists(f"{mount}{path}/cgroup.procs")), None)
    return None


def _is_plain(folder: str) -> bool:
    if read_text(f"{folder}/cgroup.subtree_control"):
        return False
    limits = [read_text(f"{folder}/{name}") for name in _LIMITS]
    return all(limit is None or limit.startswith("max") for limit in limits)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
