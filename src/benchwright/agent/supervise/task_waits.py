"""How long the threads and processes of a program waited for a core, by looks at them while they live.

The kernel counts that for each of them, and forgets it when their parent reaps them: only of the program's first thread is
the last figure known. Looks are the closer together the shorter the program has run, so that little is missed of any length;
on a quiet machine, and of a program that is one thread, there are few.
"""

from __future__ import annotations

import os
import time

from benchwright.agent.processes.process_tree import LINUX, ProcessStat, read_proc, read_stat

_LEAST_NS = 2_000_000  # between two looks
_SELDOM, _OFTEN = 0.1, 0.02  # of the time that it has run
_MOST_COST = 1 / 30  # of a core
_MOST_TASKS = 32  # of more, some wait at the same time
_NOTICED_NS = 1_000_000  # less is how long an idle core takes to wake up

Task = tuple[int, int]  # process, thread


class TaskWaits:
    """Of the program that process `pid` has been since `began_ns`."""

    def __init__(self, pid: int, began_ns: int) -> None:
        self._pid = pid
        self._began_ns = began_ns
        self._tasks: dict[Task, tuple[int, int]] = {}  # ns it ran, ns it waited for a core
        self._looks = self._together = 0  # at which any, and at which several were ready to run
        self.due_ns: int | None = began_ns if LINUX else None  # None: nothing can be seen

    def look(self, now_ns: int) -> None:
        """If it is time."""
        if self.due_ns is None or now_ns < self.due_ns:
            return
        before_ns = time.thread_time_ns()
        ready = self._read()
        if ready is None or len(self._tasks) > _MOST_TASKS:
            self.due_ns = None
            return
        self._looks += ready > 0
        self._together += ready > 1
        waits = len(self._tasks) > 1 and sum(waited for _, waited in self._tasks.values()) >= _NOTICED_NS
        apart = (_OFTEN if waits else _SELDOM) * (now_ns - self._began_ns)
        cost_ns = time.thread_time_ns() - before_ns
        self.due_ns = now_ns + int(max(_LEAST_NS, apart, cost_ns / _MOST_COST))

    def seen(self, first: tuple[int, int]) -> tuple[int, int, float] | None:
        """Nanoseconds they all ran and waited for a core, and at what share of the looks several of them were ready to run.

        `first`: what the kernel counted of the first thread until its end. None if no other was seen, or too many were.
        """
        tasks = self._tasks | {(self._pid, self._pid): first}
        if len(tasks) < 2 or not self._looks or self.due_ns is None:
            return None
        ran_ns, waited_ns = (sum(times) for times in zip(*tasks.values(), strict=True))
        return ran_ns, waited_ns, self._together / self._looks

    def _read(self) -> int | None:
        """How many are ready to run, or running, now; None if the kernel lists no children."""
        ready, processes = 0, [self._pid]
        while processes:
            pid = processes.pop()
            process = read_stat(pid)
            if process is None:
                continue
            for task in _threads(process):
                folder = f"/proc/{pid}/task/{task}"
                state = process.state if task == pid and process.threads == 1 else _state(folder)
                ready += state == "R"
                counts = (read_proc(f"{folder}/schedstat") or b"").split()
                if len(counts) == 3:
                    self._tasks[pid, task] = int(counts[0]), int(counts[1])
                children = read_proc(f"{folder}/children")
                if children is None and pid == self._pid and not process.ended:
                    return None
                processes += [int(child) for child in (children or b"").split()]
        return ready


def _threads(process: ProcessStat) -> list[int]:
    if process.threads <= 1:
        return [process.pid]
    try:
        return [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]
    except OSError:
        return []


def _state(folder: str) -> str:
    data = read_proc(f"{folder}/stat")
    return data[data.rindex(b")") + 2 :][:1].decode() if data else ""
