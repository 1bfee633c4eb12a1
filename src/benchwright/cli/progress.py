"""Progress of a run on stderr: one changing line on a terminal, plain lines otherwise."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import unquote

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.model import ScriptDiscovery
from benchwright.core.numbers.quantities import format_bytes, format_duration
from benchwright.core.run import Launch, Plan
from benchwright.core.status import Status
from benchwright.executors.observer import Observer

_FIRST_WORD_S = 2.0  # shorter runs need no progress
_REDRAW_S = 0.5
_REMIND_S = 30.0  # without a terminal, a line now and then shows that it still runs


class Progress(Observer):
    """`quiet`: only problems. `long`: a line per process. A terminal gets a line that is redrawn, a pipe a line per launch
    and now and then one for a launch that takes long.

    If stderr is closed (`2>&1 | head -1`, a full disk), the run goes on without it.
    """

    def __init__(
        self, stream: TextIO | None = None, *, quiet: bool = False, verbose: bool = False, long: bool = False
    ) -> None:
        self.stream: TextIO | None = stream or sys.stderr  # None: closed, or nobody reads it any more
        self.quiet = quiet
        self.verbose = verbose
        self.long = long  # a line per running process, with its latest figures
        self.said: dict[str, str] = {}
        self.drawn_lines = 0
        self.live = self.stream is not None and self.stream.isatty()
        self.began = time.monotonic()
        self.launch_began = self.began
        self.remind_at = float("inf")
        self.words = ""
        self.drawn = False
        self.inside_line = False  # what the program printed last did not end its line
        self.lock = threading.Lock()
        self.done = threading.Event()
        self.thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        if self.thread is not None:
            self.thread.join()
        with self.lock:
            self._clear()

    def on_discovery(self, number: int, total: int, script: Benchmark) -> None:
        self.launch_began = time.monotonic()
        self.remind_at = self.launch_began + _FIRST_WORD_S
        self.words = f"[{number}/{total}] looking for models in {script.name}"
        self._start()

    def on_discovered(self, script: Benchmark, found: ScriptDiscovery) -> None:
        self.remind_at = float("inf")
        with self.lock:
            self._clear()
        if not self.quiet and found.trouble:
            self._say(f"{script.name}: {found.trouble}")

    def on_run(self, folder: Path, plan: Plan, machine: Machine) -> None:
        if self.verbose:
            self._say(f"run folder: {folder}")
        if plan.launches:
            self._start()

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        self.launch_began = time.monotonic()
        self.remind_at = self.launch_began + _FIRST_WORD_S
        with self.lock:
            self.said = {job.id: "starting" for job in jobs} if self.long else {}
            self._clear()  # what this launch prints begins a line of its own
        self.words = f"[{number}/{total}] {_readable(jobs[0].id)}" + (
            f" and {len(jobs) - 1} more" if len(jobs) > 1 else ""
        )
        if self.verbose:
            self._say(f"{self.words}: {' '.join(jobs[0].argv)}")

    def on_recorded(self, number: int, total: int, launches: Sequence[Launch]) -> None:
        self.remind_at = float("inf")
        worst = next((x for x in launches if x.status is not Status.OK), launches[0])
        slow = time.monotonic() - self.began > _FIRST_WORD_S
        if self.quiet or (self.live and worst.status is Status.OK) or not (slow or self.verbose):
            return
        took = "" if worst.duration_s is None else f", {format_duration(worst.duration_s)}"
        word = worst.status.value if worst.reason is None else f"{worst.status.value} ({worst.reason.value})"
        self._say(f"[{number}/{total}] {_readable(worst.job)}: {word}{took}")

    def on_output(self, job_id: str, text: str) -> None:
        with self.lock:
            self._erase()
            self._write(text)
            self.inside_line = not text.endswith("\n")

    def on_progress(self, job_id: str, values: Mapping[str, Any]) -> None:
        if not self.long:
            return
        words = [format_duration(float(values.get("elapsed_s", 0.0)))]
        if values.get("rss_bytes"):
            words.append(f"{format_bytes(float(values['rss_bytes']))} RSS")
        words += [f"{name} {value:.4g}" for name, value in (values.get("metrics") or {}).items()][:3]
        with self.lock:
            self.said[job_id] = "  ".join(words)

    def on_finished(self, outcome: Outcome) -> None:
        if self.long:
            with self.lock:
                self.said[outcome.job] = f"ended after {format_duration(outcome.duration_s)}"

    def on_trouble(self, text: str) -> None:
        self._say(f"benchwright: {text}")

    def _start(self) -> None:
        """Begins to redraw, unless that goes on already."""
        if not self.quiet and self.stream is not None and self.thread is None:
            self.thread = threading.Thread(target=self._redraw, daemon=True)
            self.thread.start()

    def _say(self, text: str) -> None:
        with self.lock:
            self._clear()
            self._write(text + "\n")

    def _redraw(self) -> None:
        while not self.done.wait(_REDRAW_S):
            now = time.monotonic()
            if not self.live:
                self._remind(now)
                continue
            if now - self.began < _FIRST_WORD_S or not self.words:
                continue
            with self.lock:
                size = shutil.get_terminal_size()
                lines = [f"{self.words}  {format_duration(now - self.launch_began)}"]
                lines += [f"  {job}  {words}" for job, words in self.said.items()][: size.lines - 2]
                if not self.inside_line:
                    self._erase()
                    self._write("\n".join(line[: size.columns - 1] for line in lines))
                    self.drawn, self.drawn_lines = True, len(lines)

    def _remind(self, now: float) -> None:
        if now >= self.remind_at:
            self.remind_at = now + _REMIND_S
            self._say(f"{self.words}: running for {format_duration(round(now - self.launch_began, 1))}")

    def _clear(self) -> None:
        """To the beginning of an empty line."""
        self._erase()
        if self.inside_line:
            self._write("\n")
            self.inside_line = False

    def _erase(self) -> None:
        if self.drawn:
            up = f"\x1b[{self.drawn_lines - 1}A" if self.drawn_lines > 1 else ""
            self._write(f"\r{up}\x1b[J")
            self.drawn = False

    def _write(self, text: str) -> None:
        if self.stream is None:
            return
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):  # ValueError: it was closed
            self.stream = None


def _readable(job_id: str) -> str:
    """A job's name without the escapes that a file name needs."""
    return unquote(job_id) if unquote(job_id).isprintable() else job_id
