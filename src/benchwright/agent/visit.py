"""What a node is asked without an agent: `python -P visit.py look FILE…` or `… sweep TOKEN SECONDS`.

The answer is one line of JSON behind a mark, because a login may print anything before it.
"""

import json
import os
import sys
import time

if not __package__:  # started as a file: the package may not be on this interpreter's path
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from benchwright.agent.processes import kill_all, marked_processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER = "benchwright answers: "
_KILL_S = 5.0


def look(files: "list[str]") -> "dict[str, Any]":
    """What this node is, and what it sees of these files."""
    import msgspec

    from benchwright.agent.fingerprint import read_machine
    from benchwright.version import __version__

    seen = {path: _text(path) for path in files}
    return {"version": __version__, "machine": msgspec.to_builtins(read_machine()), "files": seen}


def sweep(token: str, wait_s: float) -> "dict[str, Any]":
    """End what carries the mark: it may do so by itself for a while. Says how many there still are."""
    deadline = time.monotonic() + wait_s
    while _living(token) and time.monotonic() < deadline:
        time.sleep(0.1)
    kill_all(lambda: marked_processes(token), _KILL_S)
    return {"left": len(_living(token))}


def _living(token: str) -> "list[int]":
    return [stat.pid for stat in marked_processes(token) if not stat.ended]


def _text(path: str) -> "str | None":
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1000)
    except OSError:
        return None


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    answer = look(arguments) if what == "look" else sweep(arguments[0], float(arguments[1]))
    sys.stdout.write(ANSWER + json.dumps(answer) + "\n")
