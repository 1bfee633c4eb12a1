"""The display of `python -m benchprobe`: a status line that is redrawn, plain lines if piped, and a summary."""

from __future__ import annotations

import os
import time
from textwrap import wrap
from typing import List, Optional

from benchprobe.view.summary import LoopFigures, StreamSummary

WIDTH = 80
BAR_WIDTH = 16
MAX_ROWS = 12


def tree_rss_bytes(process: int) -> int:
    """Memory of a process and all its descendants; 0 if it cannot be read."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            pages = int(file.read().split()[1])
        children: List[int] = []
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", "rb") as file:
                children += map(int, file.read().split())
    except (OSError, IndexError):  # it has just ended
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(map(tree_rss_bytes, children))


def status(summary: StreamSummary, elapsed_s: float, rss_bytes: int, goal: Optional[int], width: int = WIDTH) -> str:
    """One line, no longer than `width`: progress, rate, loss, memory, time. `goal`: the number of steps to measure."""
    loop = summary.shown
    parts: List[str] = ["no loop yet"] if loop is None else []
    if loop is not None:
        to_goal = goal is not None and loop.counts
        done, total = (loop.measured_steps, goal) if to_goal else (loop.steps, loop.total)
        parts.append(f"{loop.name[:16]} {_progress(done, total)}")
        rate = loop.rate
        parts.append(f"{_number(rate[0])} {rate[1]}" if rate and loop.measured_steps > 0 else "warming up")
        if loop.last_loss is not None:
            parts.append(f"loss {_number(loop.last_loss)}")
    if rss_bytes:
        parts.append(f"{_bytes(rss_bytes)} RSS")
    parts.append(_clock(elapsed_s))
    line = parts[0]
    for part in parts[1:]:
        if len(line) + 3 + len(part) <= width:
            line += " | " + part
    return line[:width]


def table(summary: StreamSummary, title: str, width: int = WIDTH) -> List[str]:
    """The summary, as lines of at most `width` characters."""
    lines = [title[:width]]
    if not summary.loops:
        lines.append('no loop was measured: use `for batch in iterate("train", loader)` of benchprobe')
    else:
        lines.append("loop              steps warm-up median step            rate waiting  loss")
        lines += [_row(loop, summary) for loop in summary.loops[:MAX_ROWS]]
        if len(summary.loops) > MAX_ROWS:
            lines.append(f"… and {len(summary.loops) - MAX_ROWS} more")
    if summary.lost:
        lines.append(f"{summary.lost} events were lost: the dashboard was too slow")
    notes = []
    for loop in summary.loops[:MAX_ROWS]:
        if loop.measured_steps == 0 and loop.rate:
            notes.append(f"loop '{loop.name}' finished during warm-up; all steps but the first were counted")
        elif loop.cut_short:
            notes.append(f"loop '{loop.name}' had not stabilised when warm-up reached its limit")
    for note in notes + summary.messages[:MAX_ROWS]:
        lines += wrap(f"note: {note}", width, subsequent_indent="  ", break_on_hyphens=False)
    return lines


def _row(loop: LoopFigures, summary: StreamSummary) -> str:
    several = len({other.process for other in summary.loops}) > 1
    name = f"{loop.name} [{loop.process}]" if several else loop.name
    median_ms, rate, waiting = loop.median_ms, loop.rate, loop.waiting_percent
    return (
        f"{name[:14]:14} {loop.steps:8d} {loop.warmup_steps:7d}"
        f" {'-' if median_ms is None else _number(median_ms) + ' ms':>11}"
        f" {'-' if rate is None else _number(rate[0]) + ' ' + rate[1]:>15}"
        f" {'-' if waiting is None else f'{waiting:.1f} %':>7}"
        f"  {'-' if loop.last_loss is None else _number(loop.last_loss)}"
    )


def _progress(steps: int, total: Optional[int]) -> str:
    if not total:
        return f"{steps} steps"
    filled = round(min(steps / total, 1.0) * BAR_WIDTH)
    return f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {steps}/{total}"


def _number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)[:10]
    return f"{value:.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.4g}"


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


class Memory:
    """The memory of a process tree, read at most twice a second, and its peak."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._looked = 0.0
        self.now_bytes = self.peak_bytes = 0

    def look(self) -> None:
        if time.monotonic() - self._looked > 0.5:
            self._looked = time.monotonic()
            self.now_bytes = tree_rss_bytes(self._root)
            self.peak_bytes = max(self.peak_bytes, self.now_bytes)


def title(script: str, ended: str, elapsed_s: float, peak_bytes: int) -> str:
    memory = f", peak memory {_bytes(peak_bytes)} RSS" if peak_bytes else ""
    return f"benchprobe: {script[-24:]} {ended} after {_clock(elapsed_s)}{memory}"
