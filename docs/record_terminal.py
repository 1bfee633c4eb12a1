"""Records a real run in a terminal as an animated SVG, for the README: `make recording`.

python docs/record_terminal.py docs/images/recording.svg
"""

from __future__ import annotations

import argparse
import fcntl
import html
import os
import pty
import select
import shlex
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

import pyte

COLUMNS, ROWS = 80, 24
COMMAND = "bw run --repeat 20 -c 'python old.py' -c 'python new.py'"
PROGRAM = """import json
records = [{"id": n, "name": f"item {n}", "values": list(range(20))} for n in range(3000)]
for _ in range(2):
    json.dumps(records%s)
"""
LONGEST_S, LAST_S = 9.0, 6.0  # of what happens, and of the last picture
FRAMES_PER_S = 8
CHARACTER, LINE = 8.4, 18  # the size of a cell, in pixels
Frame = tuple[float, tuple[str, ...]]  # from when on, in seconds, and the lines


def recorded(command: Sequence[str], folder: Path) -> list[Frame]:
    """The screens of the command, whenever they changed."""
    screen = pyte.Screen(COLUMNS, ROWS - 1)
    stream = pyte.ByteStream(screen)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        own = {"BENCHWRIGHT_BASE": str(folder / "base"), "COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm"}
        os.execvpe(command[0], command, {**os.environ, **own, "NO_COLOR": "1", "CI": ""})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    frames: list[Frame] = []
    started = shown = time.monotonic()
    while True:
        ready, _, _ = select.select([terminal], [], [], 1 / FRAMES_PER_S)
        try:
            data = os.read(terminal, 65536) if ready else b""
        except OSError:  # Linux tells the end of a terminal by an error
            break
        if ready and not data:
            break
        stream.feed(data)
        if time.monotonic() - shown >= 1 / FRAMES_PER_S:
            shown = time.monotonic()
            _add(frames, shown - started, screen, folder)
    os.waitpid(child, 0)
    _add(frames, time.monotonic() - started, screen, folder)
    return frames


def _add(frames: list[Frame], when: float, screen: pyte.Screen, folder: Path) -> None:
    lines = tuple(line.rstrip().replace(str(folder / "base"), "~") for line in screen.display)
    if not frames or frames[-1][1] != lines:
        frames.append((when, lines))


def with_prompt(frames: Sequence[Frame], command: str) -> list[Frame]:
    """The command is typed first; what took long passes faster."""
    typed = [(number * 0.04, (f"$ {command[:number]}",)) for number in range(0, len(command) + 1, 4)]
    begin = typed[-1][0] + 0.4
    speed = max(1.0, frames[-1][0] / LONGEST_S)
    return [*typed, *((begin + when / speed, (f"$ {command}", *lines)) for when, lines in frames)]


def animated(frames: Sequence[Frame]) -> str:
    """The SVG: each line is there once for each stretch of time in which it stands."""
    end = frames[-1][0] + LAST_S
    height = max(len([x for x in lines if x]) + 1 for _, lines in frames) * LINE + 16
    stretches: list[tuple[int, str, float, float]] = []
    for row in range(ROWS):
        text, since = "", 0.0
        for when, lines in (*frames, (end, ())):
            now = lines[row] if row < len(lines) else ""
            if now != text:
                if text:
                    stretches.append((row, text, since, when))
                text, since = now, when
    styles, texts = [], []
    for number, (row, text, since, until) in enumerate(stretches):
        a, b = since / end * 100, until / end * 100
        off = "" if b >= 100 else f"{b:.2f}%{{opacity:0}}"
        styles.append(
            f"@keyframes k{number}{{0%{{opacity:0}}{a:.2f}%{{opacity:1}}{off}}}#t{number}{{animation-name:k{number}}}"
        )
        texts.append(f'<text id="t{number}" y="{(row + 1) * LINE + 2}">{html.escape(text, quote=False)}</text>')
    width = COLUMNS * CHARACTER + 24
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f'aria-label="A terminal: {html.escape(COMMAND)}">\n<style>\n'
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#e6edf3;white-space:pre;opacity:0;"
        f"animation:{end:.1f}s step-end infinite}}\n"
        "@media (prefers-reduced-motion:reduce){text{animation-delay:-"
        + f"{end - 0.1:.1f}s;animation-play-state:paused}}}}\n"
        + "\n".join(styles)
        + '\n</style>\n<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n<g transform="translate(12 6)">\n'
        + "\n".join(texts)
        + "\n</g>\n</svg>\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "old.py").write_text(PROGRAM % ", sort_keys=True, indent=1")
        (folder / "new.py").write_text(PROGRAM % "")
        frames = recorded(shlex.split(COMMAND), folder)
    options.file.write_text(animated(with_prompt(frames, COMMAND)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
