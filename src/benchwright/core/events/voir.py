"""What a program reported through voir: rates, losses, accelerators, phases and errors.

A plain object is data, `{"$event": …, "$data": …}` an event. A time or a task may be missing, numbers may be NaN, and
everything may come twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeGuard

import msgspec

from benchwright.core.note import Note

TRAIN = "train"
UNNAMED = "main"  # the task of data without one
# From benchprobe, where processes are measured together: what lies between the first two counts, then the process runs on.
BEGIN, END, LEFT = "measure_begin", "measure_end", "measure_left"
RANK = "$rank"  # added by benchprobe if lines of several ranks are mixed
_LONGEST_S = 1e9  # no program runs for thirty years
_CLOCK_SLACK_NS = 2_000_000_000  # a line's own time is trusted if it lies within the program's life
_MOST_ERRORS = 5
_NOT_VALUES = frozenset({"task", "time", "units", "rate", "loss", "progress", "memory_peak"})
_MIB = float(1 << 20)
_BYTES = {"b": 1.0, "kib": 1024.0, "kb": 1000.0, "mib": _MIB, "mb": _MIB, "gib": _MIB * 1024, "gb": _MIB * 1024}


class Seen(NamedTuple):
    """A value and its time, in nanoseconds of the machine's monotonic clock."""

    t: int
    value: float


class GpuSeen(NamedTuple):
    t: int
    device: str
    values: dict[str, float]  # named as by our own sampler


class VoirRecord(msgspec.Struct):
    """Everything reported so far, by one process or by all ranks together; `ranks` also keeps each rank apart."""

    lines: int = 0
    unreadable: int = 0
    rates: dict[str, list[Seen]] = {}
    units: dict[str, str] = {}
    losses: dict[str, list[float]] = {}
    values: dict[tuple[str, str], list[float]] = {}
    gpus: list[GpuSeen] = []
    gpu_memory_bytes: dict[str, float] = {}  # capacity of each device
    memory_peaks: list[float] = []  # in bytes
    progress: dict[str, tuple[float, float]] = {}
    phases: dict[str, int] = {}  # start of each
    errors: list[str] = []
    late_errors: list[str] = []  # after the early stop, which may have caused them
    instrument_errors: list[str] = []
    stops: dict[str, int] = {}  # number of rates of each task at the early stop
    marks: dict[str, tuple[int, dict[str, int]]] = {}  # time, and number of rates of each task by then
    began: tuple[int, float] | None = None  # the program's start: monotonic and wall clock
    stopped: bool = False
    ranks: dict[int, VoirRecord] = {}
    _last_gpu: tuple[Any, Any] = (None, None)

    def say(self, said: dict[str, object], t: int) -> None:
        """Adds one object, seen at `t`."""
        self.lines += 1
        rank = said.get(RANK)
        if isinstance(rank, int):
            said = {key: value for key, value in said.items() if key != RANK}
            self.ranks.setdefault(rank, VoirRecord(began=self.began)).say(said, t)
        if "$event" in said:
            self.event(said["$event"], said.get("$data"), t)
        else:
            self.data(said, t)

    def unread(self) -> None:
        """Counts a line that is not an object."""
        self.lines += 1
        self.unreadable += 1

    @property
    def wanted(self) -> int | None:
        """How many observations the program's own early stop waits for."""
        found = self.progress.get("early_stop")
        return int(found[1]) if found and found[1] >= 1 else None

    def event(self, kind: object, data: object, t: int) -> None:
        about = data if isinstance(data, dict) else {}
        if kind == "stop" and not self.stopped:
            self.stopped = True
            self.stops = {task: len(seen) for task, seen in self.rates.items()}
        elif kind == "phase" and isinstance(about.get("name"), str):
            self.phases.setdefault(about["name"], t)
        elif kind == "error" and about.get("type") != "SystemExit":  # the normal end of a script
            _keep(self.late_errors if self.stopped else self.errors, about)
        elif kind in ("overseer_error", "format_error"):
            _keep(self.instrument_errors, about)
        elif kind in (BEGIN, END, LEFT):
            when = about.get("t")
            counts = {task: len(seen) for task, seen in self.rates.items()} | _counts(about.get("rates"))
            self.marks.setdefault(kind, (when if isinstance(when, int) else t, counts))

    def data(self, data: dict[str, Any], seen_ns: int) -> None:
        t = self._time_of(data, seen_ns)
        task = data["task"] if isinstance(data.get("task"), str) else UNNAMED
        units = data["units"] if isinstance(data.get("units"), str) else None
        if is_number(rate := data.get("rate")):
            self.rates.setdefault(task, []).append(Seen(t, float(rate)))
            self.units.setdefault(task, units or "items/s")
        if is_number(loss := data.get("loss")):
            of = task if "task" in data else TRAIN  # the task of a loss without one
            self.losses.setdefault(of, []).append(float(loss))
        if is_number(peak := data.get("memory_peak")):
            self.memory_peaks.append(float(peak) * _BYTES.get((units or "MiB").lower(), _MIB))
        steps = data.get("progress")
        if isinstance(steps, list) and len(steps) == 2 and all(map(is_number, steps)):
            self.progress[task] = (float(steps[0]), float(steps[1]))
        if isinstance(data.get("gpudata"), dict):
            self._gpus(data["gpudata"], t, data.get("time", seen_ns))
        for name, value in data.items():
            if name not in _NOT_VALUES and not name.startswith("$") and is_number(value):
                self.values.setdefault((task, name), []).append(float(value))

    def _time_of(self, data: dict[str, object], seen_ns: int) -> int:
        """The program's own time if it gives a credible one, else when its line was seen."""
        said = data.get("time")
        if self.began is None or not is_number(said) or not abs(said - self.began[1]) < _LONGEST_S:
            return seen_ns
        t = self.began[0] + int((said - self.began[1]) * 1e9)
        return t if self.began[0] - _CLOCK_SLACK_NS <= t <= seen_ns + _CLOCK_SLACK_NS else seen_ns

    def _gpus(self, devices: dict[str, object], t: int, key: object) -> None:
        if (key, devices) == self._last_gpu:
            return  # a repetition
        self._last_gpu = (key, devices)
        for device, about in devices.items():
            if isinstance(about, dict):
                values, total = gpu_values(about)
                if total:
                    self.gpu_memory_bytes[str(device)] = total
                if values:
                    self.gpus.append(GpuSeen(t, str(device), values))

    def notes(self) -> list[Note]:
        notes = [Note(text=f"voir: {text}", severity="error") for text in self.errors]
        notes += [Note(text=f"voir: {text}, after it had asked to stop") for text in self.late_errors]
        notes += [Note(text=f"voir: an instrument failed: {text}") for text in self.instrument_errors]
        if self.unreadable:
            text = "some lines of voir's stream could not be read and do not count"
            notes.append(Note(text=text, evidence=f"{self.unreadable} of {self.lines}"))
        return notes

    def facts(self) -> dict[str, object]:
        """What else to keep with the launch."""
        return {
            "lines": self.lines,
            "early_stop": self.stopped or self._early_stop_reached,
            "progress": {task: list(steps) for task, steps in self.progress.items() if task != "early_stop"},
            "phases_ns": self.phases,
            "gpu_memory_bytes": self.gpu_memory_bytes,
            "errors": self.errors,
        }

    @property
    def _early_stop_reached(self) -> bool:
        found = self.progress.get("early_stop")
        return END in self.marks or (found is not None and found[0] > found[1])


def _counts(said: object) -> dict[str, int]:
    return {k: v for k, v in said.items() if isinstance(v, int)} if isinstance(said, dict) else {}


def gpu_values(about: dict[str, object]) -> tuple[dict[str, float], float | None]:
    """The values of one device of `gpudata`, named as by our sampler, and its memory in bytes.

    -1 and texts stand for values that the device does not report.
    """
    memory = about.get("memory")
    used, total = memory if isinstance(memory, list) and len(memory) == 2 else (None, None)
    raw = {
        "memory_bytes": (used, _MIB),
        "load_percent": (about.get("load"), 100.0),
        "temperature_c": (about.get("temperature"), 1.0),
        "power_w": (about.get("power"), 1.0),
    }
    values = {name: float(value) * scale for name, (value, scale) in raw.items() if is_number(value) and value >= 0}
    return values, float(total) * _MIB if is_number(total) and total > 0 else None


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that a float can hold; NaN is."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < 2**1023


def _keep(errors: list[str], about: dict[str, object]) -> None:
    text = ": ".join(str(about[key]) for key in ("type", "message") if about.get(key))
    text = " ".join(text.split())[:500]
    if text and text not in errors and len(errors) < _MOST_ERRORS:
        errors.append(text)
