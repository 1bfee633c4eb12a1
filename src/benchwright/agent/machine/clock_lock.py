"""Holds the clocks of NVIDIA GPUs at one frequency, and gives them back in any case.

    python -m benchwright.agent.machine.clock_lock (MHZ | auto) [TOKEN…]

The process that locks the clocks lives as long as whoever started it: when its standard input is closed or its parent is gone,
killed or not, it gives the clocks back and ends. A lock that somebody set before is gone then: the driver does not tell it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from benchwright.agent.machine.nvml import find_handles, open_nvml
from benchwright.agent.supervise.program_environment import visible_devices

AUTO = "auto"
AUTO_SHARE = 0.7  # of the highest clock: few loads reach the power limit there, so it is held
_LOOK_S = 0.5  # how soon it sees that its parent is gone
_ANSWER_S = 30.0
_MODULE = "benchwright.agent.machine.clock_lock"


class CannotLock(Exception):
    """Why the clocks are as they were."""


def lock(nvml: Any, handles: Sequence[Any], wanted: str) -> list[int]:
    """Locks all of them; the clock of each, in MHz. CannotLock: none is."""
    clocks: list[int] = []
    try:
        for handle in handles:
            clock = _supported(nvml, handle, wanted)
            nvml.nvmlDeviceSetGpuLockedClocks(handle, clock, clock)
            clocks.append(clock)
    except nvml.NVMLError as error:
        unlock(nvml, handles[: len(clocks)])
        raise CannotLock(f"{error}; locking clocks usually takes root, and not every GPU can") from None
    return clocks


def unlock(nvml: Any, handles: Sequence[Any]) -> list[str]:
    """Gives them back; what the driver says against it."""
    troubles = []
    for handle in handles:
        try:
            nvml.nvmlDeviceResetGpuLockedClocks(handle)
        except nvml.NVMLError as error:
            troubles.append(str(error))
    return troubles


def _supported(nvml: Any, handle: object, wanted: str) -> int:
    """The nearest clock that the GPU has."""
    highest = nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
    clock = round(highest * AUTO_SHARE) if wanted == AUTO else int(wanted)
    try:
        memory = max(nvml.nvmlDeviceGetSupportedMemoryClocks(handle))
        known = nvml.nvmlDeviceGetSupportedGraphicsClocks(handle, memory)
    except nvml.NVMLError:  # some GPUs do not list them, and take the nearest themselves
        return min(clock, int(highest))
    return int(min(known, key=lambda each: abs(each - clock)))


def main(words: Sequence[str]) -> int:
    """Locks, says so, and stays until it is no longer wanted."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # whoever ends the run is waited for
    parent = os.getppid()
    nvml = open_nvml()
    handles = find_handles(nvml, list(words[1:]) or visible_devices(os.environ)) if nvml is not None else []
    if not handles:
        _say(error="there is no NVIDIA GPU that can be read here")
        return 1
    try:
        clocks = lock(nvml, handles, words[0])
    except CannotLock as error:
        _say(error=str(error))
        return 1
    try:
        _say(clocks=clocks)
        while os.getppid() == parent:
            if select.select([0], [], [], _LOOK_S)[0] and not os.read(0, 1):
                break
    finally:
        troubles = unlock(nvml, handles)
    _say(unlocked=not troubles, error="; ".join(troubles) or None)
    return int(bool(troubles))


def _say(**answer: object) -> None:
    try:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    except OSError:
        pass  # nobody listens any more; the clocks matter


class ClockLock:
    """Locks the clocks of this machine's GPUs, from a separate process. CannotLock if that is impossible."""

    def __init__(self, wanted: str, command: Sequence[str] = (sys.executable, "-m", _MODULE)) -> None:
        # In a separate session: Ctrl-C is for the run, and this must outlive it.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._holder = subprocess.Popen([*command, wanted], text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]
        answer = self._answer(_ANSWER_S)
        if "clocks" not in answer:
            self._end()
            raise CannotLock(str(answer.get("error") or "the process that locks them did not answer"))
        self.clocks: list[int] = answer["clocks"]

    def close(self) -> str | None:
        """Gives them back; what went wrong."""
        self._holder.stdin.close()
        answer = self._answer(_ANSWER_S)
        self._end()
        if answer.get("unlocked"):
            return None
        return f"the clocks of the GPUs may still be locked ({answer.get('error') or 'their holder was killed'}): run nvidia-smi -rgc"

    def _end(self) -> None:
        for pipe in (self._holder.stdin, self._holder.stdout):
            pipe.close()
        self._holder.wait()

    def _answer(self, patience_s: float) -> dict[str, Any]:
        if not select.select([self._holder.stdout], [], [], patience_s)[0]:
            return {}
        try:
            answer: dict[str, Any] = json.loads(self._holder.stdout.readline())
        except ValueError:  # it ended without a word
            return {}
        return answer


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
