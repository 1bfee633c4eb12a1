"""A process that starts up while another is measured waits for its turn before it touches the device."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Mapping, Optional

from benchmodels.reports import Reports
from benchprobe.config import VARIABLE

POLL_INTERVAL_S = 0.005


class Turn:
    """That of this process; one that waits for nobody if it was not given any."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        told: Optional[Mapping[str, Any]] = json.loads(environment.get(VARIABLE) or "{}").get("turn")
        self._folder = None if told is None else str(told["folder"])
        self._place = 0 if told is None else int(told["place"])

    @property
    def is_alone(self) -> bool:
        """Nobody whose turn was before still has memory on the device."""
        return self._folder is None

    def wait(self, reports: Reports) -> None:
        """Until those before it are done with the device, and those that had its half of the cores have ended."""
        if self._folder is None:
            return
        if _used_cuda() is not None:
            reports.message("this process used the GPU before its turn, while another was being measured")
        before = [os.path.join(self._folder, f"go-{place}") for place in range(1, self._place + 1)]
        before += [os.path.join(self._folder, f"ended-{place}") for place in range(self._place - 1)]
        while not all(map(os.path.exists, before)):  # one may have ended before its own turn came
            time.sleep(POLL_INTERVAL_S)

    def pass_on(self) -> None:
        """This process is done with the device; what it still does needs only the processor."""
        if self._folder is None:
            return
        cuda = _used_cuda()
        if cuda is not None:
            cuda.synchronize()
            cuda.empty_cache()
        with open(os.path.join(self._folder, f"go-{self._place + 1}"), "w"):
            pass


def _used_cuda() -> Optional[Any]:
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None
