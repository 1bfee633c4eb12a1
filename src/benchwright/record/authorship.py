"""Whether the agent's events were really written by the agent.

A measured program knows where its stream is, and could claim there that it ended well. The agent numbers its own lines:
a forged line has no number, a repeated one, or one after the end.
"""

from __future__ import annotations

from benchwright.record.reading import Event

_AGENTS = frozenset(
    ["stream", "start", "sample", "metric", "printed", "voir", "extraction", "pause", "tick", "exit", "end"]
)
_OF_BOTH = frozenset(["message", "lost"])  # the program's own name its process


class Authorship:
    """Checks the events of a stream as they come."""

    def __init__(self) -> None:
        self._numbers: set[int] = set()
        self._foreign = 0
        self._end: int | None = None

    def look(self, event: Event) -> None:
        kind = event.get("event")
        if kind not in _AGENTS and (kind not in _OF_BOTH or "process" in event):
            return
        number = event.get("n")
        if type(number) is not int or number < 0 or number in self._numbers or self._end is not None:
            self._foreign += 1
            return
        self._numbers.add(number)
        if kind == "end":
            self._end = number

    def problem(self, unreadable: int) -> str | None:
        """What is wrong, in words; None if nothing is, or the stream has no numbers. `unreadable`: how many lines were."""
        if not self._numbers:
            return None
        foreign = self._foreign + sum(1 for n in self._numbers if self._end is not None and n > self._end)
        if foreign:
            return f"{_counted(foreign)} in its stream claim to be the agent's but are not; a program must write only to its own files"
        missing = max(self._numbers) + 1 - len(self._numbers)
        if missing > unreadable:
            return f"{_counted(missing)} of the agent are missing from its stream: something else wrote to that file"
        return None


def _counted(events: int) -> str:
    return f"{events} event{'' if events == 1 else 's'}"
