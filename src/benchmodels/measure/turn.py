"""A process that starts up while another is measured waits for its turn before it touches the device."""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Optional, Sequence

from benchmodels.measure.memory import used_cuda
from benchmodels.reports import Reports
from benchprobe.config import VARIABLE

SETTLE_S = 0.06  # until the others are held back: their supervisors look every 20 ms


class Turn:
    """That of this process; one that waits for nobody if it was not given any."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        settings: Mapping[str, Any] = json.loads(environment.get(VARIABLE) or "{}").get("turn") or {}
        self._folder: Optional[str] = settings.get("folder")
        self._place = int(settings.get("place", 0))
        self._cores: Sequence[int] = settings.get("cores") or ()
        self._aside: Sequence[int] = settings.get("aside") or ()
        self._lock: Optional[int] = None  # the kernel releases it when this process ends, however that is
        self._had_one = False

    @property
    def is_alone(self) -> bool:
        """Nobody whose turn was before still has memory on the device."""
        return self._folder is None

    def wait(self, reports: Reports) -> None:
        """Until nobody else has the device; then this process has the cores of the one that is measured."""
        if self._folder is None:
            return
        if used_cuda() is not None and not self._had_one:
            reports.message("this process used the GPU before its turn, while another was being measured")
        waiting = self._create("waiting", self._place)
        self._lock = os.open(os.path.join(self._folder, "turn"), os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        _remove(waiting)
        _move_to(self._cores)
        self._had_one = True

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """While others that start up or are checked are held back."""
        if self._folder is None:
            yield
            return
        mark = self._create("quiet", self._place, str(os.getpid()))
        try:
            time.sleep(SETTLE_S)
            yield
        finally:
            _remove(mark)

    def pass_on(self) -> None:
        """This process is done with the device; what it still does needs only the processor."""
        if self._lock is None:
            return
        cuda = used_cuda()
        if cuda is not None:
            cuda.synchronize()
            cuda.empty_cache()
        _move_to(self._aside)
        fcntl.flock(self._lock, fcntl.LOCK_UN)  # also for processes that were forked with it
        os.close(self._lock)
        self._lock = None

    def _create(self, what: str, place: int, text: str = "") -> str:
        assert self._folder is not None
        path = os.path.join(self._folder, f"{what}-{place}")
        with open(path, "w") as file:
            file.write(text)
        return path


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # the run's folder is gone


def _move_to(cores: Sequence[int]) -> None:
    """With all threads, of which libraries have started some. Both halves are of one size, so none needs more or fewer."""
    if not cores:
        return
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except OSError:
            pass  # it has ended, or those cores were taken away
