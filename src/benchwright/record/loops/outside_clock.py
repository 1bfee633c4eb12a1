"""Checks a program's clock against the supervisor's, which runs outside of it.

Both append to one file and stamp their lines. A line between two of the supervisor's was written between their times. So
the time between a loop's first and last line is known from outside, within bounds, whatever the program's clock shows and
however late it writes.
"""

from __future__ import annotations

import msgspec

from benchwright.record.loops.loops import LoopKey
from benchwright.record.loops.steps import NS
from benchwright.record.stream_file import Event

_SLACK_S = 0.25  # the supervisor stamps a line shortly before writing it
_CLEARLY = 0.25  # two clocks must differ by this share before one is called wrong


class _Sighting(msgspec.Struct):
    stamp_ns: int  # by the program's clock
    after_ns: int  # the supervisor's stamp before the line
    before_ns: int | None = None  # and after it


class OutsideClock(msgspec.Struct):
    """Fed with the events of a stream in file order."""

    now_ns: int | None = None
    _first: dict[LoopKey, _Sighting] = {}
    _last: dict[LoopKey, _Sighting] = {}
    _open: list[_Sighting] = []

    def supervisor(self, event: Event) -> None:
        """An event that the supervisor wrote."""
        t = event.get("t")
        is_written_then = event["event"] != "pause"  # its time is when the pause began, and it is written at the end
        if isinstance(t, int) and "process" not in event and is_written_then:
            self.now_ns = t
            for sighting in self._open:
                sighting.before_ns = t
            self._open.clear()

    def steps(self, key: LoopKey, event: Event) -> None:
        """A line of measured steps of a loop."""
        stamp_ns = event.get("written")
        if self.now_ns is None or not isinstance(stamp_ns, int):
            return
        seen = _Sighting(stamp_ns, self.now_ns)
        self._first.setdefault(key, seen)
        self._last[key] = seen
        self._open.append(seen)

    def bounds_s(self, key: LoopKey) -> tuple[float, float, float] | None:
        """The time between the loop's first and last line by the program's clock, and the least and most it can have been;
        None if there is only one line, or the supervisor wrote nothing after it."""
        first, last = self._first.get(key), self._last.get(key)
        if first is None or last is None or first is last or first.before_ns is None or last.before_ns is None:
            return None
        claimed = last.stamp_ns - first.stamp_ns
        least = last.after_ns - first.before_ns
        most = last.before_ns - first.after_ns
        return claimed * NS, max(0.0, least * NS - _SLACK_S), most * NS + _SLACK_S


def contradiction(bounds: tuple[float, float, float] | None) -> str | None:
    """In words, if the program's clock cannot be right."""
    if bounds is None:
        return None
    claimed, least, most = bounds
    if least * (1 - _CLEARLY) <= claimed <= most * (1 + _CLEARLY):
        return None
    found = f"at least {least:.3g} s" if claimed < least else f"at most {most:.3g} s"
    return f"its clock shows {claimed:.3g} s for the measurement, the supervisor's clock {found}"
