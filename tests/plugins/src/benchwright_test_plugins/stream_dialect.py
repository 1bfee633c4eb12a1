"""Lines such as `train rate=512.5`, written to the descriptor $DATA_FD; `train done` asks to be ended."""

from __future__ import annotations

from benchwright.core.reported import Reported, Seen
from benchwright.core.stream_dialect import Glance, StreamDialect


class KeyValueStream(StreamDialect):
    def read(self, line: str, t: int, reported: Reported) -> None:
        task, _, said = line.strip().partition(" ")
        key, _, value = said.partition("=")
        if said == "done":
            reported.lines += 1
            reported.stop()
        elif (rate := _number(value)) is not None and key == "rate":
            reported.lines += 1
            reported.add_rate(task, Seen(t, rate), "items/s")
        else:
            reported.unread()

    def glance(self, line: str) -> Glance | None:
        if line.rstrip().endswith(" done"):
            return Glance({}, stop_asked=True)
        rate = _number(line.partition(" rate=")[2])
        return None if rate is None else Glance({"rate": rate})


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
