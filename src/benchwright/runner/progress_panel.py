"""The live panel as lines of text: how far the whole is, then a line for each running job and each other step."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec

from benchwright.core.job import Job
from benchwright.core.private_files import not_through_a_link
from benchwright.core.quantities import format_bytes
from benchwright.core.run import Plan
from benchwright.core.secrets import redact_text
from benchwright.plan.turns import started_together
from benchwright.report.text.numbers import format_number, format_value
from benchwright.report.text.one_line import clip, columns_of

# What a running job does, from the growing ends of its stream and its log. Reading is bounded, whatever the job writes.


_MOST_BYTES = 1 << 18  # of a stream, at one look; what comes before is skipped
_LOG_BYTES = 2048
_KEPT_RATES = 24
_PHASES = {b"warmup": "warm-up", b"measured": "measuring", b"after": "waiting"}
_CONTROL = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]")
# As benchprobe writes it; only the head of a line with thousands of steps is looked at.
_STEPS = re.compile(
    rb'\{"event":"steps","process":(\d+),"loop":(\d+),"first":(\d+),"phase":"(\w+)","t":(\d+),"step_ns":\['
)
_ITEMS = re.compile(rb'"items":(\d+)[,}]')


class _Event(msgspec.Struct):
    """The fields of interest in the other events."""

    event: str
    process: int = 0
    loop: int = 0
    total: int | None = None
    counts: bool = False
    name: str | None = None
    unit: str | None = None
    step: str | int | None = None  # of a build, its name


_EVENTS = msgspec.json.Decoder(_Event)


class _Pace:
    """Of the loop that counts, in one process."""

    def __init__(self, loop: int, unit: str | None = None) -> None:
        self.loop = loop
        self.unit = unit
        self.total: int | None = None
        self.steps = 0
        self.measured_from: tuple[int, int] | None = None  # its first measured step, and when that began
        self.at: tuple[int, int] | None = None  # the newest steps that were seen: the first of them, and when it began
        self.items: int | None = None  # in a step
        self.rate: float | None = None  # steps a second

    def look(self, heads: list[re.Match[bytes]]) -> None:
        """At the steps that were written since the last look."""
        for head in heads:
            if head[4] == b"measured" and self.measured_from is None:
                self.measured_from = int(head[3]), int(head[5])
        last = heads[-1]
        first, began_ns = int(last[3]), int(last[5])
        before = self.at or (int(heads[0][3]), int(heads[0][5]))
        if first > before[0] and began_ns > before[1]:
            self.rate = (first - before[0]) / (began_ns - before[1]) * 1e9
        self.at = first, began_ns
        end = last.string.find(b"]", last.end())
        self.steps = first + last.string.count(b",", last.end(), end) + 1
        items = _ITEMS.search(last.string, end)
        self.items = int(items[1]) if items else None


class GrowingFile:
    """New whole lines of a file, at each look."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = 0
        self._rest = b""
        self.skipped = False

    def lines(self) -> list[bytes]:
        try:
            with open(self._path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size <= self._at:
                    return []
                if size - self._at > _MOST_BYTES:
                    self._at, self._rest, self.skipped = size - _MOST_BYTES, b"", True
                file.seek(self._at)
                data = self._rest + file.read(size - self._at)
        except OSError:
            return []
        self._at = size
        *lines, self._rest = data.split(b"\n")
        return lines


class RunningJob:
    """`phase` is one of starting, importing, running, building, loading, warm-up, measuring, waiting, ending, ended."""

    def __init__(self, job: Job, now: float, *, imports: bool = True) -> None:
        self.job = job
        self.began = now
        self.phase = "importing" if imports else "running"
        self.detail = ""  # which part of a build
        self.rates: deque[float] = deque(maxlen=_KEPT_RATES)
        self.memory_bytes: float | None = None
        self.metrics: dict[str, float] = {}  # the newest of those read from its log
        self._stream = GrowingFile(job.stream)
        self._paces: dict[int, _Pace] = {}  # by process

    def heard(self, values: Mapping[str, object]) -> None:
        """Takes in the values that its agent sends now and then."""
        memory, metrics = values.get("rss_bytes"), values.get("metrics")
        if isinstance(memory, int | float):
            self.memory_bytes = float(memory)
        if isinstance(metrics, dict) and metrics != self.metrics:
            self.metrics = {str(k): float(v) for k, v in metrics.items() if isinstance(v, int | float)}
            if not self._paces and self.metrics:
                self.rates.append(next(iter(self.metrics.values())))
                if "rate" in self.metrics:  # of a runner, which tells it once it measures
                    self.phase = "measuring"

    def look(self) -> None:
        """Reads what is new in its stream."""
        new: dict[int, list[re.Match[bytes]]] = {}
        for line in self._stream.lines():
            head = _STEPS.match(line)
            if head is None:
                self._take(line)
                continue
            pace = self._paces.get(int(head[1]))
            if pace is None and self._stream.skipped:  # its `loop` event, too, perhaps
                pace = self._paces[int(head[1])] = _Pace(int(head[2]))
            if pace is not None and pace.loop == int(head[2]):
                new.setdefault(int(head[1]), []).append(head)
                self.phase = _PHASES.get(head[4], self.phase)
        for process, heads in new.items():
            self._paces[process].look(heads)
        if new and (rate := self.rate) is not None:
            self.rates.append(rate[0])

    def _take(self, line: bytes) -> None:
        try:
            event = _EVENTS.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):  # of others, or cut off
            return
        pace = self._paces.get(event.process)
        if event.event == "loop" and event.counts:
            if pace is None or pace.loop != event.loop:
                calls = event.name == "latency" and "benchmodels" in self.job.argv  # a step is a call of a model
                pace = self._paces[event.process] = _Pace(event.loop, "calls" if calls else event.unit)
                self.phase, self.detail = "warm-up", ""
            pace.total = None if event.total is None else pace.steps + event.total
        elif event.event in ("measure", "stop") and pace is not None and pace.loop == event.loop:
            self.phase = "measuring" if event.event == "measure" else "ending"
        elif event.event == "build_begin":
            self.phase, self.detail = "building", str(event.step or "")
        elif event.event == "runtime" and pace is None:
            self.phase, self.detail = "loading", ""

    @property
    def rate(self) -> tuple[float, str] | None:
        """Per second and of what, of all its processes together."""
        known = [pace for pace in self._paces.values() if pace.rate is not None]
        if not known:
            return None
        if any(pace.items is None for pace in known):
            return sum(pace.rate or 0.0 for pace in known), "steps/s"
        rate = sum((pace.rate or 0.0) * (pace.items or 1) for pace in known)
        return rate, f"{known[0].unit or 'items'}/s"

    @property
    def steps(self) -> tuple[int, int | None] | None:
        """Done, and how many there will be, if that is known: of the process that is furthest behind."""
        slowest = min(self._paces.values(), key=lambda pace: pace.steps, default=None)
        return None if slowest is None else (slowest.steps, slowest.total)

    def share_done(self) -> float | None:
        """How much of the job is done, by the stop rule if that tells it, else by the length of its loop."""
        slowest = min(self._paces.values(), key=lambda pace: pace.steps, default=None)
        if slowest is None or slowest.at is None:
            return None
        stop, shares = self.job.probe.get("stop") or {}, []
        if slowest.measured_from is not None:
            step, since_ns = slowest.measured_from
            if stop.get("steps"):
                shares.append((slowest.steps - step) / stop["steps"])
            if stop.get("seconds"):
                shares.append((slowest.at[1] - since_ns) / 1e9 / stop["seconds"])
        if slowest.total:
            shares.append(slowest.steps / slowest.total)
        return min(1.0, max(shares)) if shares else None

    def last_line(self) -> str:
        """The newest line it printed."""
        return last_line(self.job.log)


def last_line(path: str) -> str:
    """The newest line of a log that is not empty, as a terminal would show it, without what looks secret; of a progress bar
    its newest state."""
    try:
        with open(path, "rb", opener=not_through_a_link) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LOG_BYTES))
            text = file.read(_LOG_BYTES).decode(errors="replace")
    except OSError:
        return ""
    for line in reversed(re.split(r"[\r\n]", text)):
        if shown := _CONTROL.sub("", line).strip():
            return redact_text(shown)
    return ""


_BARS = "▁▂▃▄▅▆▇█"
_SPARK = 12
_BAR = 20
_PHASE = len("importing")
_GAP = "  "


class Schedule:
    """The launches of a run, and how long is left: from how long launches of the same benchmark took, or others; from how
    long a script took, searched and measured, for scripts still to search."""

    def __init__(self, plan: Plan, now: float) -> None:
        self.began = now
        self._seconds: dict[str, list[float]] = {}  # what its launches took
        self.plan_is(plan)

    def plan_is(self, plan: Plan, scripts_left: int = 0, scripts: int = 0) -> None:
        """`scripts_left` of `scripts` are still to be searched for models."""
        groups = started_together(plan.launches)
        self._groups = [tuple(dict.fromkeys(launch[0].benchmark for launch in group)) for group in groups]
        # Launches that start up while another one is measured are measured one by one, and counted so.
        self._sizes = [len(group) if group[0][0].turn is not None else 1 for group in groups]
        self._counted = [0, *accumulate(self._sizes)]
        self.total = len(self._groups)
        self.scripts_left, self._scripts = scripts_left, scripts

    def place(self, number: int, within: int) -> tuple[int, int]:
        """Numbers for people: the launch `within` group `number`, and how many there are."""
        return min(self._counted[number - 1] + within + 1, self._counted[number]), self._counted[-1]

    def share_done(self, number: int, within: int) -> float | None:
        """Of launches that are measured one by one in group `number`; None if it is a single one."""
        size = self._sizes[number - 1]
        return within / size if size > 1 else None

    @property
    def script_words(self) -> str:
        """`script 4 of 100`; empty if there is only one."""
        return f"script {self._scripts - self.scripts_left} of {self._scripts}" if self._scripts > 1 else ""

    def took(self, number: int, seconds: float, within: int = 0) -> None:
        """All of group `number`, once the last `within` it has ended."""
        if within + 1 < self._sizes[number - 1]:
            return
        for benchmark in self._groups[number - 1]:
            self._seconds.setdefault(benchmark, []).append(seconds)

    def left_s(self, number: int, running_s: float, share: float | None) -> float | None:
        """While launch `number` runs: the rest of it and all later ones; None: nothing to tell it from yet."""
        current = running_s / share if share and share > 0.02 else self._expected(number)
        if current is None:
            return None
        later = [self._expected(n) for n in range(number + 1, self.total + 1)]
        here = max(0.0, current - running_s) + sum(current if s is None else s for s in later)
        if not self.scripts_left:
            return here
        passed = time.monotonic() - self.began  # searching included
        return here + (passed + here) * self.scripts_left / max(1, self._scripts - self.scripts_left)

    def _expected(self, number: int) -> float | None:
        same = [s for b in self._groups[number - 1] for s in self._seconds.get(b, ())]
        known = same or [s for took in self._seconds.values() for s in took]
        return sum(known) / len(known) if known else None


class Step:
    """Something other than a launch that goes on: an install, a download, reading many files."""

    def __init__(self, what: str, now: float, log: str | None = None, *, announced: bool = False) -> None:
        self.what, self.began, self.log, self.announced = what, now, log, announced

    def words(self, now: float) -> str:
        text = last_line(self.log) if self.log is not None else ""
        return f"{self.what}{_GAP}{clock(now - self.began)}" + (f"{_GAP}{text}" if text else "")


def step_line(name: str, step: Step, now: float) -> str:
    return f"{name}: {step.words(now)}" if name else step.words(now)


def clock(seconds: float) -> str:
    """`0:07`, `12:30`, `1:02:30`: does not change its width all the time."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"


def roughly(seconds: float) -> str:
    """`under a minute`, `4 min`, `2 h 10 min`: an estimate is not known to the second."""
    minutes = round(seconds / 60)
    if seconds < 50:
        return f"{max(5, 5 * round(seconds / 5)):.0f} s"
    return f"{max(1, minutes)} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def head_line(name: str, position: str, elapsed_s: float, left: str, share: float | None, width: int) -> str:
    """`[3/12] bert  ━━━━━━────  1:05, about 4 min left`."""
    times = clock(elapsed_s) + (f", {left} left" if left else "")
    room = width - columns_of(position) - columns_of(times) - 4
    bar = "" if share is None or room < columns_of(name) + 10 else _bar(share, min(_BAR, room - columns_of(name) - 2))
    return clip(_GAP.join(filter(None, (f"{position} {clip(name, max(8, room))}".strip(), bar, times))), width)


def _bar(share: float, width: int) -> str:
    full = round(min(1.0, max(0.0, share)) * width)
    return "━" * full + "─" * (width - full)


def job_lines(jobs: Sequence[RunningJob], now: float, width: int, most: int) -> list[str]:
    """A line each; of more than `most`, the first, and how many are left out."""
    names = dict(zip((j.job.id for j in jobs), short_names([j.job for j in jobs]), strict=True))
    shown = jobs if len(jobs) <= most else jobs[: max(0, most - 1)]
    column = max((columns_of(names[j.job.id]) for j in shown), default=0)
    lines = [_job_line(j, names[j.job.id], min(column, width // 3), now, width) for j in shown]
    return lines + ([f"  … and {len(jobs) - len(shown)} more"] if len(jobs) > len(shown) else [])


def short_names(jobs: Sequence[Job]) -> list[str]:
    """Short distinct names for the jobs of a launch (`D0`, `D1`); empty for a single one."""
    if len(jobs) < 2:
        return [""] * len(jobs)
    last = [job.id.rpartition(".")[2] for job in jobs]
    return last if len(set(last)) == len(last) else [job.id for job in jobs]


def _job_line(running: RunningJob, name: str, column: int, now: float, width: int) -> str:
    """Name, phase and rate stay; where room is short, memory, sparkline and steps go in this order."""
    lead = clip(name, column)
    start = "  " + (lead + " " * (column - columns_of(lead)) + _GAP if column else "") + f"{running.phase:<{_PHASE}}"
    figure = _figure(running)
    spark = sparkline(list(running.rates)[-_SPARK:])
    memory = format_bytes(running.memory_bytes) if running.memory_bytes else ""
    if not figure:
        text = running.detail or running.last_line()
        return clip(_GAP.join(filter(None, (start, f"{memory:>9}" if memory else "", text))), width)
    steps = _steps(running)
    for parts in ((figure, spark, steps, memory), (figure, spark, steps), (figure, steps), (figure,)):
        line = _GAP.join([start, *filter(None, parts)])
        if columns_of(line) <= width:
            return line
    return clip(line, width)


def _figure(running: RunningJob) -> str:
    if (rate := running.rate) is not None:
        return format_value(*rate).rjust(14)
    return ", ".join(f"{name} {format_number(value)}" for name, value in list(running.metrics.items())[:3])


def _steps(running: RunningJob) -> str:
    if (steps := running.steps) is None:
        return ""
    done, total = steps
    return f"step {done:,}" + (f" of {total:,}" if total is not None else "")


def sparkline(values: Sequence[float]) -> str:
    """A character for each value; differences below a few per cent look small, as they are."""
    finite = [v for v in values if v == v and abs(v) != float("inf")]
    if len(finite) < 2:
        return ""
    low, high = min(finite), max(finite)
    span = max(high - low, 0.1 * max(abs(low), abs(high))) or 1.0
    middle = (low + high) / 2
    return "".join(_BARS[min(7, max(0, int(((v - middle) / span + 0.5) * 8)))] for v in finite)


def panel_lines(head: str, jobs: Sequence[RunningJob], steps: dict[str, Step], *, width: int, height: int) -> list[str]:
    now = time.monotonic()
    lines = [head] if head else []
    room = max(1, height - len(lines))
    lines += [clip(step_line(name, step, now), width) for name, step in list(steps.items())[:room]]
    return lines + job_lines(jobs, now, width, max(1, room - len(steps)))
