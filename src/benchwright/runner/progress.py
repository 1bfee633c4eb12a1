"""Progress of whatever takes a while: a panel where it can be redrawn, else one line for each event."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, Self

from msgspec.structs import replace

from benchwright.analysis.summary import summarize
from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, Outcome, readable_job
from benchwright.core.machine import Machine
from benchwright.core.model import ScriptDiscovery
from benchwright.core.quantities import format_duration
from benchwright.core.run import Launch, Plan, culprit
from benchwright.core.secrets import redact_words
from benchwright.core.status import Status
from benchwright.executors.observer import Observer
from benchwright.report.text.metrics import headline_metrics, metric_label
from benchwright.report.text.numbers import counted, format_value, percent
from benchwright.report.text.one_line import one_line
from benchwright.runner.progress_panel import RunningJob, Schedule, Step, head_line, panel_lines, roughly, step_line

# A result in a few words, as soon as it is there. The report at the end says more.


_OF_WORKERS = ("total", "average_aggregate")  # depend on the number of workers, which only the report knows


def headline(launches: Sequence[Launch], *, took: bool = False) -> str:
    """`829.4 samples/s ± 1.2 % (8 launches)`: the first metric of the report; failed launches are counted.

    `took`: with the duration of the first launch, unless that is the metric.
    """
    good = [x for x in launches if x.counts] or [x for x in launches if x.status is Status.OK]
    failed = sum(x.status is not Status.OK for x in launches)
    words = f"{failed} of {counted(len(launches), 'launch', 'launches')} failed" if failed else ""
    plain = [replace(x, measurements=tuple(m for m in x.measurements if m.aggregate not in _OF_WORKERS)) for x in good]
    found = headline_metrics(summarize(plain, percentiles=False))
    if not found:
        return words or "ok"
    first = found[0]
    about = "" if first.half_width is None else f" ± {percent(first.half_width)}"
    count = f" ({counted(first.launches, 'launch', 'launches')})" if first.launches > 1 else ""
    name = "" if first.metric in ("rate", "process.duration") else f"{metric_label(first.metric)} "
    text = f"{name}{format_value(first.value, first.unit)}{about}{count}"
    if took and first.metric != "process.duration" and launches[0].duration_s is not None:
        text += f", {format_duration(launches[0].duration_s)}"
    return one_line(f"{words}; {text}" if words else text)


def failure_words(launches: Sequence[Launch]) -> str | None:
    """None: all of them went well. A warm-up launch that failed counts, too."""
    bad = culprit(launches) or next((x for x in launches if x.status is not Status.OK), None)
    if bad is None:
        return None
    reason = "" if bad.reason is None else bad.reason.value.replace("_", " ")
    why = one_line(bad.detail or reason)
    word = "FAILED" if bad.status is Status.FAILED else bad.status.value
    after = "" if bad.duration_s is None else f" after {format_duration(bad.duration_s)}"
    return f"{word}{after}" + (f": {why}" if why else "")


_SHORTEST_S = 0.125  # between two drawings
_REDRAW_S = 0.25
_CALM_S = 1.0  # while something is measured on the same cores
_FIRST_DRAW_S = 0.7  # shorter work needs no panel
_FIRST_WORD_S = 2.0  # nor lines
_FIRST_WORD_OF_STEP_S = 10.0  # in a log, what is neither install nor launch matters only if it lasts
_SILENCE_S = 15.0  # without a panel, a line now and then shows that it still runs
_LONG_SILENCE_S = 30.0
_NO_IMPORTS = ("command", "tasks")  # kinds whose programs need not be Python


class Surface(Protocol):
    """Where progress is shown. `live`: it can be redrawn."""

    @property
    def live(self) -> bool: ...

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines that a panel may have."""
        ...

    def draw(self, lines: Sequence[str]) -> None:
        """Replaces what was drawn before."""
        ...

    def say(self, text: str) -> None:
        """A line that stays."""
        ...

    def echo(self, text: str) -> None:
        """Shows a line that a program printed."""
        ...

    def close(self) -> None:
        """Leaves nothing drawn."""
        ...


class Progress(Observer):
    """Thread-safe. `quiet`: only problems. `verbose`: folders and commands, too. `jobs`: a line for each running job."""

    def __init__(self, surface: Surface, *, quiet: bool = False, verbose: bool = False, jobs: bool = True) -> None:
        self._surface = surface
        self._quiet, self._verbose, self._with_jobs = quiet, verbose, jobs
        self._lock = threading.RLock()
        self._over, self._changed = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._began = self._spoke = time.monotonic()
        self._steps: dict[str, Step] = {}
        self._waiting: dict[str, RunningJob] = {}  # not started yet
        self._running: dict[str, RunningJob] = {}
        self._plan: Plan | None = None
        self._schedule: Schedule | None = None
        self._position = (0, 0)
        self._recorded = (0, 0)  # the last group of launches that was recorded, and how many of it before
        self._launch_began = self._began
        self._announced = False  # the current launch
        self._launches: dict[str, list[Launch]] = {}  # those recorded, by benchmark
        self._planned: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._surface.close()

    # A run.

    def on_discovery(self, number: int, total: int, script: Benchmark) -> None:
        self.begin("looking for models", f"[{number}/{total}] {script.name}")

    def on_discovered(self, script: Benchmark, found: ScriptDiscovery) -> None:
        with self._lock:
            self._steps = {}
        if found.trouble and not self._quiet:
            self._say(f"{script.name}: {found.trouble}")

    def on_run(self, folder: Path, plan: Plan, machine: Machine) -> None:
        if self._verbose:
            self._say(f"run folder: {folder}")
        with self._lock:
            self._steps = {}
            self._schedule = Schedule(plan, time.monotonic())
            self._launches = {}
        self.on_grown(plan, 0, 0)
        if plan.launches:
            self._start()

    def on_grown(self, plan: Plan, left: int, total: int) -> None:
        with self._lock:
            self._plan, self._planned = plan, {}
            for launch in plan.launches:
                self._planned[launch[0].benchmark] = self._planned.get(launch[0].benchmark, 0) + len(launch)
            if self._schedule is not None:
                self._schedule.plan_is(plan, left, total)

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        now = time.monotonic()
        kinds = {b.name: b.kind for b in self._plan.benchmarks} if self._plan is not None else {}
        with self._lock:
            self._position, self._launch_began, self._announced = (number, total), now, False
            made = {job.id: RunningJob(job, now, imports=kinds.get(job.benchmark) not in _NO_IMPORTS) for job in jobs}
            self._waiting = {job.id: made[job.id] for job in jobs if job.turn is not None}
            self._running = {job_id: job for job_id, job in made.items() if job_id not in self._waiting}
        self._changed.set()
        if self._verbose:
            self._say(f"{self._launch_words()}: {' '.join(redact_words(jobs[0].argv))}")

    def on_started(self, job_id: str, pid: int) -> None:
        with self._lock:
            if job_id in self._waiting:
                self._running[job_id] = self._waiting.pop(job_id)
                self._running[job_id].began = time.monotonic()

    def on_progress(self, job_id: str, values: Mapping[str, object]) -> None:
        with self._lock:
            if job_id in self._running:
                self._running[job_id].heard(values)

    def on_output(self, job_id: str, text: str) -> None:
        with self._lock:
            self._spoke = time.monotonic()
            self._surface.echo(text)

    def on_finished(self, outcome: Outcome) -> None:
        with self._lock:
            if outcome.job in self._running:
                self._running[outcome.job].phase = "ended"

    def on_recorded(self, number: int, total: int, launches: Sequence[Launch]) -> None:
        with self._lock:
            benchmark = self._benchmark_of(launches[0])
            self._recorded = (number, self._recorded[1] + 1 if number == self._recorded[0] else 0)
            done = self._launches.setdefault(benchmark, [])
            done += launches
            complete = len(done) == self._planned.get(benchmark)
            if self._running and self._schedule is not None:
                self._schedule.took(number, time.monotonic() - self._launch_began, self._recorded[1])
        if not self._quiet:
            try:
                self._tell(number, total, benchmark, launches, complete=complete)
            except Exception as error:  # a line of progress is never worth a run; the report will say what is wrong
                self._say(f"[{number}/{total}] {benchmark}: {type(error).__name__}: {error}")
        with self._lock:
            for launch in launches:
                self._running.pop(launch.job, None)
                self._waiting.pop(launch.job, None)
        over = self._schedule is None or not self._schedule.scripts_left
        if number == total and not self._running and not self._waiting and over:
            self.begin("saving the results")

    def _benchmark_of(self, launch: Launch) -> str:
        plan = self._plan.launches if self._plan is not None else ()
        return next((job.benchmark for jobs in plan for job in jobs if job.id == launch.job), launch.job)

    def _tell(self, number: int, total: int, benchmark: str, launches: Sequence[Launch], *, complete: bool) -> None:
        """A failure always; a result when its benchmark is complete, and without a panel that of each longer launch. Nothing
        of a run that is over in a moment."""
        bad = failure_words(launches)
        several, repeated = len(self._planned) > 1, self._planned.get(benchmark, 1) > len(launches)
        place = f"{self._place(number, total, self._recorded[1])} {readable_job(launches[0].job)}"
        if bad is not None:
            if total > 1 or self._is_slow(_FIRST_WORD_S):  # else the report says it at the same moment
                self._say(f"{place}: {bad}")
        elif self._surface.live and complete and several and self._is_slow(_FIRST_DRAW_S):
            self._say(f"{benchmark}: {headline(self._launches[benchmark])}")
        elif not self._surface.live and (
            self._announced
            or self._verbose
            or self._is_silent(_SILENCE_S)
            or (complete and several and not repeated and self._is_slow(_FIRST_WORD_S))
        ):
            self._say(f"{place}: {headline(launches, took=True)}")
        if not self._surface.live and complete and repeated and self._is_slow(_FIRST_WORD_S) and bad is None:
            self._say(f"{benchmark}: {headline(self._launches[benchmark])}")

    def on_trouble(self, text: str) -> None:
        self._say(f"benchwright: {text}")

    # Anything else.

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        plain = not self._surface.live
        with self._lock:
            self._steps.pop("", None)
            self._steps[name] = Step(what, time.monotonic(), log, announced=plain)
        self._start()
        if plain and not self._quiet:
            self._say(f"{name}: {what}")

    def on_step_now(self, name: str, what: str) -> None:
        self.begin(what, name)

    def on_step_done(self, name: str, how: str = "") -> None:
        with self._lock:
            self._steps.pop(name, None)
        if how and not self._quiet:
            self._say(f"{name}: {how}")

    def on_note(self, text: str) -> None:
        if not self._quiet:
            self._say(f"note: {text}")

    def begin(self, what: str, name: str = "") -> None:
        """A step that is worth a word only if it takes a while. Begun again, it says what is done now."""
        with self._lock:
            if name:
                self._steps.pop("", None)
            step = self._steps.setdefault(name, Step(what, time.monotonic()))
            step.what = what
        self._start()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Others can write to the terminal meanwhile."""
        with self._lock:
            self._surface.close()
            yield

    # Showing it.

    def _start(self) -> None:
        with self._lock:
            if not self._quiet and self._thread is None:
                self._thread = threading.Thread(target=self._show, name="progress", daemon=True)
                self._thread.start()

    def _say(self, text: str) -> None:
        with self._lock:
            self._spoke = time.monotonic()
            self._surface.say(text)

    def _is_slow(self, seconds: float) -> bool:
        return time.monotonic() - self._began > seconds

    def _is_silent(self, seconds: float) -> bool:
        return time.monotonic() - self._spoke > seconds

    def _show(self) -> None:
        wait_s = _REDRAW_S
        while not self._over.wait(_SHORTEST_S):
            if self._changed.wait(wait_s - _SHORTEST_S):
                self._changed.clear()
            with self._lock:
                wait_s = self._draw() if self._surface.live else self._remind()

    def _draw(self) -> float:
        """Draws the panel; returns how long to wait before the next time."""
        if not self._is_slow(_FIRST_DRAW_S):
            return _REDRAW_S
        for running in self._running.values():
            running.look()
        width, height = self._surface.size
        jobs = list(self._running.values()) if self._with_jobs else []
        self._surface.draw(panel_lines(self._head(width), jobs, self._steps, width=width, height=height))
        hurried = any(running.phase not in ("measuring", "running") for running in self._running.values())
        return _REDRAW_S if hurried else _CALM_S / 2 if self._steps else _CALM_S

    def _head(self, width: int) -> str:
        if not self._running or self._schedule is None:
            return ""
        number, total = self._position
        elapsed = time.monotonic() - self._launch_began
        shares = [s for running in self._running.values() if (s := running.share_done()) is not None]
        share = min(shares) if len(shares) == len(self._running) else None
        share = self._schedule.share_done(number, self._ended()) or share
        left = None if self._plan and self._plan.up_to else self._schedule.left_s(number, elapsed, share)
        if left is not None:
            whole: float | None = (passed := time.monotonic() - self._schedule.began) / (passed + left or 1.0)
        else:
            whole = (number - 1) / total if total > 1 else None
        words = "" if left is None else f"about {roughly(left)}"
        position, elapsed_s = self._place(number, total, self._ended()), time.monotonic() - self._schedule.began
        return head_line(self._names(), position, elapsed_s, words, whole, width)

    def _ended(self) -> int:
        """Launches of the current group."""
        recorded = self._recorded[1] + 1 if self._recorded[0] == self._position[0] else 0
        return recorded + sum(running.phase == "ended" for running in self._running.values())

    def _place(self, number: int, total: int, within: int = 0) -> str:
        """`within`: a group of launches that start together."""
        if self._schedule is not None and total == self._schedule.total:
            number, total = self._schedule.place(number, within)
        place = f"{number}, at most {total}" if self._plan and self._plan.up_to else f"{number}/{total}"
        scripts = "" if self._schedule is None else self._schedule.script_words
        return f"[{place}; {scripts}]" if scripts else f"[{place}]"

    def _names(self) -> str:
        return ", ".join(dict.fromkeys(running.job.benchmark for running in self._running.values()))

    def _launch_words(self) -> str:
        ids = list(self._running)
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        return f"{self._place(*self._position, self._ended())} {readable_job(ids[0])}{more}"

    def _remind(self) -> float:
        """Without a panel: says that a launch runs once that takes a while, and that work goes on after a silence."""
        now = time.monotonic()
        if self._running and not self._announced and now - self._launch_began > _FIRST_WORD_S:
            self._announced = True
            self._say(f"{self._launch_words()}: started")
        elif self._running and self._is_silent(_LONG_SILENCE_S):
            for running in self._running.values():
                running.look()
            first = next(iter(self._running.values()))
            rate = f", {first.rate[0]:.4g} {first.rate[1]}" if first.rate is not None else ""
            self._say(f"{self._launch_words()}: {first.phase} for {format_duration(now - first.began)}{rate}")
        for name, step in self._steps.items():
            if not step.announced and now - step.began > _FIRST_WORD_OF_STEP_S:
                step.announced = True
                self._say(f"{name}: {step.what}" if name else step.what)
        if self._steps and self._is_silent(_SILENCE_S):
            self._say("; ".join(step_line(name, step, now) for name, step in self._steps.items()))
        return _REDRAW_S
