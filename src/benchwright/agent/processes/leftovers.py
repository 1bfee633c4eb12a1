"""Finds and ends processes of ours that are left because all of benchwright was killed at once.

Each carries its agent's mark in its environment, daemonised or not, and is in the agent's control group, if there is one.
Both have a random part, so that nobody else's process is ever mistaken for ours.
"""

from __future__ import annotations

import os
import time

from benchwright.agent.processes import job_group
from benchwright.agent.processes.process_tree import (
    MARKER,
    TICKS_PER_S,
    ProcessStat,
    all_pids,
    all_processes,
    kill_all,
    read_proc,
    read_stat,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Mark = tuple[str, str | None]  # an agent's token, and the folder of its control group

_WAIT_S = 15.0
_KILL_S = 5.0
_STEP_S = 0.05
_EXEC_S = 2.0
_YOUNG_S = 10.0


def end_leftovers(marks: Sequence[Mark], wait_s: float = _WAIT_S) -> tuple[list[str], list[str]]:
    """End what carries these marks; returns what was ended and what could not be, as `name (pid)`.

    An agent that lost only its main process ends its jobs itself, and gets time for that.
    """
    marks = [(token, group) for token, group in marks if job_group.TOKEN.fullmatch(token)]
    deadline = time.monotonic() + wait_s
    while _supervised(marks) and time.monotonic() < deadline:
        time.sleep(_STEP_S)
    found = find(marks)
    names = {stat.pid: _name(stat) for stat in found}
    for token, group in marks:
        job_group.kill(group, token)
    kill_all(lambda: find(marks), _KILL_S)
    left = {stat.pid for stat in find(marks)}
    for _, group in marks:
        job_group.remove(group)
    return [name for pid, name in names.items() if pid not in left], [names.get(pid, str(pid)) for pid in left]


def find(marks: Sequence[Mark]) -> list[ProcessStat]:
    """The living ones and all their descendants; never this process or its ancestors."""
    if not marks:
        return []
    tokens = {token for token, _ in marks}
    everybody = _settled()
    ours = {pid for token, group in marks for pid in job_group.members(group, token)}
    ours |= {stat.pid for stat in everybody if _token(read_mark(stat.pid)) in tokens}
    grown = True
    while grown:
        below = {stat.pid for stat in everybody if stat.parent in ours}
        grown = not below <= ours
        ours |= below
    ours -= _own_line()
    return [stat for stat in everybody if stat.pid in ours]


def _settled() -> list[ProcessStat]:
    """Every living process, at a moment when none is in the middle of an exec: it has no environment then, and one of
    ours would be missed."""
    deadline = time.monotonic() + _EXEC_S
    while True:
        everybody = [stat for stat in all_processes() if not stat.ended]
        newest = max((stat.start_ticks for stat in everybody), default=0)
        # Kernel threads, children of pid 2, never have one.
        young = [s for s in everybody if s.parent != 2 and newest - s.start_ticks < _YOUNG_S * TICKS_PER_S]
        if time.monotonic() > deadline or all(read_proc(f"/proc/{stat.pid}/environ") != b"" for stat in young):
            return everybody
        time.sleep(0.002)


def abandoned() -> list[str]:
    """Marked processes whose agent and supervisor are gone, as `name (pid)`; which run they belong to is unknown."""
    marks = [(pid, mark) for pid in all_pids() if (mark := read_mark(pid))]
    marked = [(stat, mark) for pid, mark in marks if (stat := read_stat(pid)) is not None and not stat.ended]
    supervised = {mark for _, mark in marked if "/" not in mark}
    own = _own_line()
    return [
        _name(stat) for stat, mark in marked if "/" in mark and _token(mark) not in supervised and stat.pid not in own
    ]


def read_mark(pid: int) -> str:
    """`TOKEN` in an agent and its supervisors, `TOKEN/JOB` in a program and what it starts; empty if there is none."""
    wanted = f"{MARKER}=".encode()
    environment = read_proc(f"/proc/{pid}/environ") or b""
    for entry in environment.split(b"\0") if wanted in environment else ():
        if entry.startswith(wanted):
            return entry[len(wanted) :].decode(errors="replace")
    return ""


def _supervised(marks: Iterable[Mark]) -> bool:
    """Whether one of their agents or supervisors still lives."""
    tokens = {token for token, _ in marks}
    return any(not stat.ended and read_mark(stat.pid) in tokens for stat in all_processes())


def _token(mark: str) -> str:
    return mark.partition("/")[0]


def _own_line() -> set[int]:
    """This process and its ancestors."""
    line, pid = set(), os.getpid()
    while pid > 0 and pid not in line:
        line.add(pid)
        stat = read_stat(pid)
        pid = stat.parent if stat is not None else 0
    return line


def _name(stat: ProcessStat) -> str:
    name = (read_proc(f"/proc/{stat.pid}/comm") or b"?").decode(errors="replace").strip()
    return f"{name} ({stat.pid})"
