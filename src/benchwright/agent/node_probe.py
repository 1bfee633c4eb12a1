"""Questions to a node without an agent: `python -P node_probe.py look FILE… [-- FOLDER…]`, `… health FOLDER` or
`… sweep SECONDS TOKEN[=GROUP]…`.

The answer is one line of JSON after a mark, because a login may print anything first.
"""

import json
import os
import sys

if not __package__:  # started as a file: the package may not be on this interpreter's path
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from benchwright.agent.processes.leftovers import end_leftovers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANSWER = "benchwright answers: "


def look(words: "list[str]") -> "dict[str, Any]":
    """Description of this node, the text of the files before `--`, and the digests of the folders after it."""
    from benchwright.agent.machine.fingerprint import machine_body
    from benchwright.version import __version__

    end = words.index("--") if "--" in words else len(words)
    return {
        "version": __version__,
        "machine": machine_body(),
        "files": {path: _text(path) for path in words[:end]},
        "digests": {path: _digest(path) for path in words[end + 1 :]},
    }


def health(folder: str) -> "dict[str, Any]":
    """The state of this node now; results are kept in `folder`."""
    from benchwright.agent.machine.health import health_body

    return {"health": health_body(folder)}


def sweep(wait_s: float, marks: "list[str]") -> "dict[str, Any]":
    """End what carries these marks, after agents had `wait_s` to do so themselves. Returns what was ended, and what is left."""
    pairs = [mark.partition("=") for mark in marks]
    ended, left = end_leftovers([(token, group or None) for token, _, group in pairs], wait_s)
    return {"ended": ended, "left": left}


def _text(path: str) -> "str | None":
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1000)
    except OSError:
        return None


def _digest(folder: str) -> "str | None":
    from benchwright.agent.folder_digest import folder_digest

    try:
        return folder_digest(folder)
    except OSError:
        return None


if __name__ == "__main__":
    what, *arguments = sys.argv[1:]
    if what == "health":
        answer = health(arguments[0])
    else:
        answer = look(arguments) if what == "look" else sweep(float(arguments[0]), arguments[1:])
    sys.stdout.write(ANSWER + json.dumps(answer) + "\n")
