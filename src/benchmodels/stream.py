"""The way from here into the event stream: each event is written at once, since they are rare and the script may not end well."""

from __future__ import annotations

from typing import Callable, Set

from benchprobe import active_probe
from benchprobe.stream.events import Event, message_event

EXIT_PATIENCE_S = 0.5


def put(event: Event) -> None:
    """Nothing happens where nobody records this process."""
    probe = active_probe()
    if probe is not None:
        probe.writer.emit(event)
        probe.writer.flush()


def complainer(put: Callable[[Event], None] = put) -> Callable[[str], None]:
    """Tells a trouble of ours, each text once."""
    told: Set[str] = set()

    def complain(text: str) -> None:
        if text not in told and len(told) < 100:
            told.add(text)
            put(message_event("models", text))

    return complain
