"""Runs the commands of a page again and puts what they print in place of the reports on it: `make recording`.

python docs/record_pages.py docs/tutorial.md

A block with a report (it ends in `saved: …`) belongs to the last `bw run` above it. Nothing is written if the machine was busy.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

COLUMNS = 80
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
    """What it prints in the checkout, with a base folder of its own; SystemExit if the machine was too busy to show it."""
    print(command, file=sys.stderr)
    environment = os.environ | {"COLUMNS": str(COLUMNS), "BENCHWRIGHT_BASE": base}
    root = Path(__file__).parent.parent
    text = subprocess.run(shlex.split(command), cwd=root, env=environment, stdout=subprocess.PIPE, check=True).stdout
    report = text.decode()
    if "⚠" in report:
        raise SystemExit(f"{report}\nnot written: the page shows a quiet run; try again on a quieter machine")
    return report


def main(pages: list[str]) -> None:
    for page in map(Path, pages):
        with tempfile.TemporaryDirectory() as base:
            text = recorded(page.read_text(encoding="utf-8"), lambda command, base=base: printed(command, base))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
