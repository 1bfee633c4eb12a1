"""`python -m benchload URL --model NAME …`: sends requests to an OpenAI-compatible server and writes what it saw into the stream.

Without benchwright, which reads that stream, it writes the events as lines of JSON.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import Any, List, Optional

from benchload.client import CannotServe, Client, Event
from benchload.exchange import StopAsked
from benchload.settings import WrongSetting, parse
from benchprobe import active_probe


def _put(event: Event) -> None:
    probe = active_probe()
    if probe is None:
        print(json.dumps(event), flush=True)
    else:
        probe.writer.emit(event)


def _stop(number: int, frame: Any) -> None:
    raise StopAsked


def main(words: Optional[List[str]] = None) -> int:
    """0 also if nothing could be measured: a `failure` event says why."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        Client(parse(sys.argv[1:] if words is None else words), _put).run()
    except WrongSetting as error:
        print(f"benchload: {error.option} {error}".replace(":  ", ": "), file=sys.stderr)
        return 2
    except CannotServe as error:
        _put({"event": "failure", "stage": "connect", "kind": "cannot_serve", "text": str(error)})
        print(f"benchload: {error}", file=sys.stderr, flush=True)
    except StopAsked:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
