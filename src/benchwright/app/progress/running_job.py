"""What a running job does, from the growing ends of its stream and its log. Reading is bounded, whatever the job writes."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Mapping

import msgspec

from benchwright.core.files.private_files import not_through_a_link
from benchwright.core.job import Job
from benchwright.core.secrets.redact import redact_text

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
    """What is of interest in the other events."""

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
        """What its agent says now and then."""
        memory, metrics = values.get("rss_bytes"), values.get("metrics")
        if isinstance(memory, int | float):
            self.memory_bytes = float(memory)
        if isinstance(metrics, dict) and metrics != self.metrics:
            self.metrics = {str(k): float(v) for k, v in metrics.items() if isinstance(v, int | float)}
            if not self._paces and self.metrics:
                self.rates.append(next(iter(self.metrics.values())))
                if "rate" in self.metrics:  # of voir, which tells it once it measures
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
