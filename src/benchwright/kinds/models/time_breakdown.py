"""Where the time of a launch went that was ended for taking too long, and in which part one crashed."""

from __future__ import annotations

from benchwright.record.stream_file import Event

BUILDING = "making the model and trying a call of it"
SHORT_S = 0.05  # shorter parts are left out
LOADING = "loading it and its first call"
AFTER_A_STEP = "what came after it"
MEASURED_CALLS, CHECKING, AFTER_CHECK = "the measured calls", "checking its outputs", "after the check"
# What follows once an event of this name came.
_THEN = {"model": LOADING, "items": CHECKING, "check": AFTER_CHECK}
_FIRST_CALL = "time.first_run"


class TimeSpent:
    """The parts of a launch, one after the other, each until the event that ends it."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, int]] = []  # each with the time at which it ended
        self._now = BUILDING

    def add(self, event: Event) -> None:
        name, at = event["event"], event.get("t")
        if not isinstance(at, int) or event.get("cached"):
            return
        if name == "build_begin":
            self._next(str(event.get("step")), at)
        elif name == "build_step":
            if self._now == BUILDING:  # the start of the step was not reported
                self._next(str(event.get("step")), at - round(1e9 * float(event.get("seconds") or 0)))
            self._now = str(event.get("step"))
            self._next(AFTER_A_STEP, at)
        elif name == "measured" and event.get("metric") == _FIRST_CALL:
            self._next(MEASURED_CALLS, at)
        elif name in _THEN:
            self._next(_THEN[name], at)

    def text(self, began: int, ended: int) -> str:
        """Such as `export 31.5 s, optimise 26.8 s`."""
        found, since = [], began
        for part, until in [*self._parts, (self._now, ended)]:
            seconds = (until - since) * 1e-9
            if seconds >= SHORT_S:
                found.append(f"{part} {seconds:.3g} s")
            since = max(since, until)
        return ", ".join(found)

    def last(self) -> str:
        """The part in which it ended. After the last step of a build, what was built is loaded."""
        return LOADING if self._now == AFTER_A_STEP else self._now

    def _next(self, part: str, at: int) -> None:
        self._parts.append((self._now, at))
        self._now = part
