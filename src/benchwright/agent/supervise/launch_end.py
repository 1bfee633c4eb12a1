"""Ends the processes of a launch together once those that report have been stopped early.

Where only some processes of a launch report, such as the first of two machines under torchrun, only these know when they
have been measured enough. The others would wait for them in a collective, and a launcher for its peers, for minutes.
"""

from __future__ import annotations

import os
import time

from benchwright.agent.supervise.barrier import create_mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from benchwright.core.job import Job

_NS = 1_000_000_000
_LOOK_NS = _NS // 2
_LAST_LOOKS = 4
_DONE, _GONE = "done-", "gone-"
_LOOP_END, _STOPPED = b'"event":"loop_end"', b'"how":"stopped"'  # as benchprobe writes them


class LaunchEndWatch:
    """One job's part in it. Jobs without a `launch_end` are never due."""

    def __init__(self, job: Job) -> None:
        self._end = job.launch_end
        self._stream = job.stream
        self._grace_ns = int(job.grace_s * _NS)
        self._read = 0  # bytes of the stream
        self._is_done = self._end is None or not self._end.reports
        self._next_ns = 0
        self._deadline_ns: int | None = None  # known once all that report are done
        self._is_shortened = False

    @property
    def next_ns(self) -> int | None:
        """When to look again."""
        return None if self._end is None else self._next_ns

    def say_done(self) -> None:
        """This job's program has been measured enough."""
        self._is_done = True
        self._mark(_DONE)

    def say_gone(self) -> None:
        """This job's program has ended."""
        self._look(self._next_ns)
        self._mark(_GONE)

    def is_due(self, now_ns: int) -> bool:
        """Whether the job is to be ended now, since its launch has been measured and others have ended or time is up."""
        if self._end is None:
            return False
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + _LOOK_NS
            self._look(now_ns)
        return self._deadline_ns is not None and now_ns >= self._deadline_ns

    def was_measured(self) -> bool:
        """Whether every process that reports was stopped early; others may be about to say so."""
        for _ in range(_LAST_LOOKS if self._end is not None else 0):
            self._look(self._next_ns)
            if self._deadline_ns is not None:
                return True
            time.sleep(_LOOK_NS / _NS)
        return False

    def _look(self, now_ns: int) -> None:
        end = self._end
        if end is None:
            return
        if not self._is_done and self._was_stopped():
            self.say_done()
        try:
            names = os.listdir(end.folder)
        except OSError:
            return
        if self._deadline_ns is None and sum(name.startswith(_DONE) for name in names) >= end.size:
            self._deadline_ns = now_ns + int(end.grace_s * _NS)
        if self._deadline_ns is not None and not self._is_shortened and any(n.startswith(_GONE) for n in names):
            self._is_shortened = True
            self._deadline_ns = min(self._deadline_ns, now_ns + self._grace_ns)

    def _was_stopped(self) -> bool:
        """Whether the program's stream tells, since the last look, of a loop that was stopped early."""
        try:
            with open(self._stream, "rb") as file:
                file.seek(self._read)
                new = file.read()
        except OSError:
            return False
        whole = new[: new.rfind(b"\n") + 1]
        self._read += len(whole)
        return any(_LOOP_END in line and _STOPPED in line for line in whole.splitlines())

    def _mark(self, what: str) -> None:
        if self._end is not None:
            create_mark(self._end.folder, f"{what}{self._end.place}")
