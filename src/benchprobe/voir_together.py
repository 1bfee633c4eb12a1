"""A voirfile: scripts run by voir that are measured together with others begin together and leave together.

Named by $VOIRFILE where a job has company. It puts an early stop of its own in the place of voir's, then loads the voirfiles
that voir would have found by itself. After its first observation a process waits for the others; the observation in which
it waited is left out; then exactly as many are measured as the early stop is told, and it runs on, unmeasured, until everybody
has theirs. Whatever goes wrong here leaves voir as it is.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, Callable, List, Optional

from benchprobe.barrier import Meeting
from benchprobe.config import from_environment

BEGIN, END, LEFT = "measure_begin", "measure_end", "measure_left"
_FIRST = "__voir__"  # what voir calls the first file it loads
_LOOK_EVERY_S = 0.05  # at whether the others have theirs


class Together:
    """What an early stop does at each observation. `log` tells the listener, `leave` ends the program."""

    def __init__(self, meeting: Meeting, n: int, log: Callable[[Any], None], leave: Callable[[], None]) -> None:
        self._meeting: Optional[Meeting] = meeting
        self._n = n
        self._log = log
        self._leave = leave
        self._seen = 0  # observations so far
        self._began_ns = 0
        self._looked = 0.0
        self._left = False
        self.measured = 0
        self.done = False

    def observe(self) -> None:
        """One observation was made. The first is warm-up; in the second it waited."""
        self._seen += 1
        if self._seen == 1:
            self._meet()
        elif self._seen == 2:
            self._log({"$event": BEGIN, "$data": {"t": self._began_ns}})
        elif not self.done:
            self.measured += 1
            if self.measured >= self._n:
                self._finish()
        self.look()

    def look(self) -> None:
        """Leave, if everybody has been measured enough."""
        now = time.monotonic()
        if not self.done or self._left or now - self._looked < _LOOK_EVERY_S:
            return
        self._looked = now
        if self._all_done():
            self._left = True
            self._log({"$event": LEFT, "$data": {"t": time.perf_counter_ns()}})
            self._leave()

    def _meet(self) -> None:
        try:
            if self._meeting is not None:
                self._meeting.wait_until_all_ready()
        except OSError as error:
            self._alone(error)
        self._began_ns = time.perf_counter_ns()

    def _finish(self) -> None:
        self.done = True
        self._log({"$event": END, "$data": {"t": time.perf_counter_ns()}})
        try:
            if self._meeting is not None:
                self._meeting.say_done()
        except OSError as error:
            self._alone(error)

    def _all_done(self) -> bool:
        try:
            return self._meeting is None or self._meeting.all_done()
        except OSError as error:
            self._alone(error)
            return True

    def _alone(self, error: OSError) -> None:
        self._meeting = None
        print(f"benchprobe: the barrier: {error}; measuring alone from here on", file=sys.stderr)


def early_stop_for(meeting: Meeting) -> Callable[..., Any]:
    """What takes the place of `voir.instruments.early_stop`; called the same way."""
    stop_program = importlib.import_module("voir.phase").StopProgram

    def early_stop(key: str, n: int, task: Optional[str] = None, signal: Any = stop_program) -> Any:
        def instrument(ov: Any) -> Any:
            def leave() -> None:
                if isinstance(signal, str):
                    ov.log({"$event": signal})
                else:
                    raise signal(None)

            together = Together(meeting, n, ov.log, leave)

            def observed(_: Any) -> None:
                together.observe()
                if together.measured and not together.done:
                    ov.give(task="early_stop", progress=(together.measured, n))

            yield ov.phases.init
            stream = ov.given if task is None else ov.given.where(task=task)
            stream.where(key).subscribe(observed)
            ov.given.subscribe(lambda _: together.look())

        return instrument

    return early_stop


def load() -> List[Any]:
    """The instruments of the voirfiles that voir would have found."""
    config = from_environment()
    manage = importlib.import_module("voir.instruments.manage")
    instruments = importlib.import_module("voir.instruments")
    if config is not None and config.barrier is not None and hasattr(manage, "early_stop"):
        replacement = early_stop_for(Meeting(config.barrier))
        manage.early_stop = replacement  # type: ignore[attr-defined]
        instruments.early_stop = replacement  # type: ignore[attr-defined]
    cli = importlib.import_module("voir.cli")
    found: List[Any] = cli.collect_instruments(cli.find_voirfiles("."))
    return [_put_back(sys.modules.get(_FIRST)), *found]


def _put_back(module: Any) -> Callable[[Any], None]:
    """The first voirfile's own module goes by the name that voir gives to this one, too: its classes are looked up there."""

    def instrument(ov: Any) -> None:
        if module is not None:
            sys.modules[_FIRST] = module

    return instrument


if __name__ == _FIRST:
    __instruments__ = load()
