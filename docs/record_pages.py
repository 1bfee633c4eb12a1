"""Runs the commands of a page again and puts what they print in place of the reports on it: `make recording`.

python docs/record_pages.py docs/tutorial.md

A block with a report (it ends in `saved: …`) belongs to the last `bw run` above it. A run with a
warning is tried again; nothing is written if the machine is never quiet.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

COLUMNS = 80
ATTEMPTS = 8
_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SAVED = re.compile(r"^ saved: .*/runs/", re.MULTILINE)


def recorded(page: str, run: Callable[[str], str]) -> str:
    """The page with new reports; `run` gives what a command prints."""
    command = ""

    def renewed(block: re.Match[str]) -> str:
        nonlocal command
        if not _SAVED.search(block[1]):
            lines = [line.partition(" #")[0].strip() for line in block[1].splitlines()]
            command = next((line for line in reversed(lines) if line.startswith("bw run ")), command)
            return block[0]
        return f"```\n{_SAVED.sub(' saved: …/runs/', run(command))}```"

    return _BLOCK.sub(renewed, page)


def printed(command: str, base: str) -> str:
    """The output of a quiet run in the checkout, with its own base folder; SystemExit if the machine is never quiet."""
    environment = os.environ | {"COLUMNS": str(COLUMNS), "BENCHWRIGHT_BASE": base}
    root = Path(__file__).parent.parent
    for _ in range(ATTEMPTS):
        _await_quiet()
        print(command, file=sys.stderr)
        done = subprocess.run(shlex.split(command), cwd=root, env=environment, stdout=subprocess.PIPE, check=True)
        report = done.stdout.decode()
        if "⚠" not in report:
            return report
        print(report, file=sys.stderr)
    raise SystemExit("not written: the page shows quiet runs; try again on a quieter machine")


def _await_quiet() -> None:
    """Until the load of the run before has faded, or of whatever else ran; for two minutes at most."""
    for _ in range(24):
        if os.getloadavg()[0] < 0.4 * (os.cpu_count() or 1):
            return
        time.sleep(5)


def main(pages: list[str]) -> None:
    for page in map(Path, pages):
        with tempfile.TemporaryDirectory() as base:
            text = recorded(page.read_text(encoding="utf-8"), lambda command, base=base: printed(command, base))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
