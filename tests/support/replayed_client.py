"""Stands in for `python -m benchload` of a run: it asks nobody, and writes what the client would have seen of a server that takes as
many ms to the first token as its port and the file `more` say. What a run, a comparison or a history makes of it depends on no clock.

`python replayed_client.py FOLDER -m benchload http://127.0.0.1:200/v1 …`
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

MS = 1_000_000


def path_with_replay(folder: Path) -> str:
    """A value of PATH whose `python` replays the client, and is otherwise this interpreter."""
    script = folder / "bin" / "python"
    script.parent.mkdir()
    (folder / "more").write_text("0")
    replay = f'[ "$2" = benchload ] && exec "{sys.executable}" "{__file__}" "{folder}" "$@"'
    script.write_text(f'#!/bin/sh\n{replay}\nexec "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    return f"{script.parent}{os.pathsep}{os.environ['PATH']}"


def events(more_ms: int, words: list[str]) -> list[dict[str, Any]]:
    from benchload.settings import parse

    settings = parse(words)
    first = (settings.address.port + more_ms) * MS
    rows = []
    for number in range(settings.requests or 1):
        planned = (1 + number) * 1000 * MS
        stamps = {"planned": planned, "begun": planned, "first": planned + first, "last": planned + first + 5 * MS}
        counts = {"chunks": 2, "gaps": [5 * MS], "tokens_in": 8, "tokens_out": 2, "cached": None, "asked": 2}
        rows.append({"number": number, **stamps, "ended": planned + first + 6 * MS, **counts, "failure": None})
    load = {"load": str(settings.load), "loop": settings.load.loop, "api": settings.api}
    about = {**load, "digest": settings.digest, "salt": "", "slo": None, "sweep": False}
    own = {"cores": "apart", "cpu": [0.1], "lag_ns": [1000], "wait_ns": [0], "server_wait": 0.0}
    return [
        {"event": "endpoint", "t": 0, **about},
        {"event": "level", "t": 0, "number": 1, "load": load["load"], "began": 0, "arrivals": len(rows)},
        {"event": "requests", "t": 0, "level": 1, **{name: [row[name] for row in rows] for name in rows[0]}},
        {"event": "endpoint_end", "t": 0, "finished": True, **own},
    ]


if __name__ == "__main__":
    from benchprobe import active_probe

    probe = active_probe()
    assert probe is not None
    for event in events(int(Path(sys.argv[1], "more").read_text()), sys.argv[4:]):
        probe.writer.emit(event)
