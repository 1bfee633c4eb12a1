"""Reads a stream that several processes appended to, some of which may have been killed."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchwright.core.earlier_names import renamed_event
from benchwright.core.events import is_known, is_sound
from benchwright.core.stored_file import open_stored

Event = dict[str, Any]
_decode = msgspec.json.Decoder(dict[str, Any]).decode
_HALF_A_CHARACTER = re.compile(r"[\ud800-\udfff]")
NOT_JSON: Event = {"event": "unreadable"}  # stands for each line that could not be read


def decode_line(line: bytes) -> Event:
    """The event in a line, or NOT_JSON if it is not one or its keys hold something else."""
    event = decode_object(line)
    name = None if event is None else event.get("event")
    if event is None or not isinstance(name, str):
        return NOT_JSON
    if not is_known(name):
        event = renamed_event(event)
    return event if is_sound(event) else NOT_JSON


def decode_object(line: bytes) -> dict[str, object] | None:
    """The JSON object of one line, or None."""
    found: object
    try:
        found = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        # msgspec is strict; a diverged loss is written as a bare NaN, which the standard library reads.
        found = _leniently_decoded(line)
    except RecursionError:
        return None
    return found if isinstance(found, dict) else None


def _leniently_decoded(line: bytes) -> object:
    """None if not even the standard library can read it. Lone surrogates, which cannot be written again, are replaced."""
    try:
        text = line.decode()
        found = json.loads(text)
        return _whole_characters(found) if "\\u" in text else found
    except (ValueError, RecursionError):
        return None


def _whole_characters(value: object) -> object:
    if isinstance(value, str):
        return _HALF_A_CHARACTER.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    return value


def read_events(path: str | Path) -> Iterator[Event]:
    """Events in file order; an unreadable line becomes NOT_JSON."""
    with open_stored(path) as stream:
        for line in stream:
            if line.strip():
                yield decode_line(line)


def stream_checksum(path: str | Path) -> str:
    """The SHA-256 sum of its bytes, in hexadecimal; OSError if it cannot be read."""
    digest = hashlib.sha256()
    with open_stored(path) as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def append_events(path: str | Path, events: Sequence[Event]) -> None:
    """Adds events to a stream whose job has ended, each on a separate line."""
    if not events:
        return
    lines = [json.dumps(event, separators=(",", ":")) for event in events]
    try:
        # The last line may be half a line; an empty line between is no event.
        with open(path, "a", encoding="utf-8") as stream:
            stream.write("\n" + "\n".join(lines) + "\n")
    except OSError:
        pass  # what is missing in the stream is missing in the launch, which is then no success


def is_complete(path: str | Path) -> bool:
    """Whether its job ended by itself or at its deadline, so that a resume need not repeat it."""
    end = _last_end(path)
    return end is not None and not any(end.get(key) for key in ("stopped", "agent_lost", "disk_full"))


def _last_end(path: str | Path) -> Event | None:
    """The `end` event near the end of the file, or None. Late lines of a killed process may follow it."""
    try:
        with open_stored(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 65536))
            tail = stream.read()
    except OSError:
        return None
    for line in reversed(tail.splitlines()):
        event = decode_line(line)
        if event.get("event") == "end":
            return event
    return None
