"""Reading a stream that several processes appended to, some of which may have been killed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

Event = dict[str, Any]
_decode = msgspec.json.Decoder(dict[str, Any]).decode
NOT_JSON: Event = {"event": "unreadable"}  # stands for each line that could not be read


def decode_line(line: bytes) -> Event:
    """The event of one line, or NOT_JSON."""
    event = decode_object(line)
    return event if event is not None and isinstance(event.get("event"), str) else NOT_JSON


def decode_object(line: bytes) -> dict[str, Any] | None:
    """The JSON object of one line, or None."""
    found: Any
    try:
        found = _decode(line)
    except msgspec.DecodeError:
        # msgspec is strict; a diverged loss is written as a bare NaN, which the standard library reads.
        try:
            found = json.loads(line)
        except (ValueError, UnicodeDecodeError, RecursionError):
            return None
    except RecursionError:
        return None
    return found if isinstance(found, dict) else None


def read_events(path: str | Path) -> Iterator[Event]:
    """Events in file order; a line that cannot be read comes as NOT_JSON."""
    with open(path, "rb") as stream:
        for line in stream:
            if line.strip():
                yield decode_line(line)


def is_complete(path: str | Path) -> bool:
    """Whether the job behind this stream ended by itself or by its deadline, so that a resume need not repeat it."""
    end = _last_end(path)
    return end is not None and not end.get("stopped") and not end.get("agent_lost")


def _last_end(path: str | Path) -> Event | None:
    """The `end` event near the end of the file, or None. Late lines of a killed process may follow it."""
    try:
        with open(path, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 65536))
            tail = stream.read()
    except (FileNotFoundError, IsADirectoryError):
        return None
    for line in reversed(tail.splitlines()):
        event = decode_line(line)
        if event.get("event") == "end":
            return event
    return None
