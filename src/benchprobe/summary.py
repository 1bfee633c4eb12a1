"""What a stream says so far: the figures that the dashboard and the summary show."""

from __future__ import annotations

from array import array
from statistics import median
from typing import Any, Dict, List, Optional, Tuple

from benchprobe.events import given_values

KEPT_STEPS = 1 << 20  # more are counted but no longer part of the median

Event = Dict[str, Any]


class LoopFigures:
    """All passages of a process through the loops of one name."""

    def __init__(self, process: int, name: str) -> None:
        self.process = process
        self.name = name
        self.counts = False
        self.total: Optional[int] = None
        self.steps = 0
        self.warmup_steps = 0
        self.last_loss: Any = None
        self._step_ns = array("q")
        self._measured_ns = 0
        self._measured_steps = 0
        self._wait_ns = 0
        self._host_ns = 0
        self._items: Optional[int] = 0

    def add(self, event: Event) -> None:
        step_ns = event["step_ns"]
        self.steps += len(step_ns)
        losses = event.get("given", {}).get("loss")
        if losses:
            self.last_loss = given_values(losses, len(step_ns))[1][-1]
        if event["phase"] == "warmup":
            self.warmup_steps += len(step_ns)
        elif event["phase"] == "measured":
            self._add_measured(event)

    def _add_measured(self, event: Event) -> None:
        step_ns = event["step_ns"]
        self._measured_steps += len(step_ns)
        self._measured_ns += event.get("window_ns", sum(step_ns))
        self._host_ns += sum(step_ns)
        self._wait_ns += sum(event["wait_ns"])
        if len(self._step_ns) < KEPT_STEPS:
            self._step_ns.extend(event.get("device_ns") or step_ns)
        items = event["items"]
        if items is None or self._items is None or (isinstance(items, list) and None in items):
            self._items = None
        else:
            self._items += sum(items) if isinstance(items, list) else items * len(step_ns)

    @property
    def median_ms(self) -> Optional[float]:
        return median(self._step_ns) / 1e6 if self._step_ns else None

    @property
    def rate(self) -> Optional[Tuple[float, str]]:
        """Per second, and of what."""
        if not self._measured_ns:
            return None
        if self._items is None:
            return self._measured_steps / self._measured_ns * 1e9, "steps/s"
        return self._items / self._measured_ns * 1e9, "items/s"

    @property
    def waiting_percent(self) -> Optional[float]:
        return 100 * self._wait_ns / self._host_ns if self._host_ns else None

    def as_dict(self) -> Dict[str, Any]:
        rate = self.rate
        return {
            "process": self.process,
            "loop": self.name,
            "steps": self.steps,
            "warmup_steps": self.warmup_steps,
            "median_step_ms": self.median_ms,
            "rate": rate and rate[0],
            "rate_unit": rate and rate[1],
            "waiting_percent": self.waiting_percent,
            "last_loss": self.last_loss,
        }


class Summary:
    """Fed with the events of a stream, in any order of processes."""

    def __init__(self) -> None:
        self.loops: List[LoopFigures] = []
        self.messages: List[str] = []
        self.lost = 0
        self._by_number: Dict[Tuple[int, int], LoopFigures] = {}
        self._by_name: Dict[Tuple[int, str], LoopFigures] = {}

    def add(self, event: Event) -> None:
        kind = event.get("event")
        if kind == "steps":
            loop = self._by_number.get((event["process"], event["loop"]))
            if loop is not None:
                loop.add(event)
        elif kind == "loop":
            self._open(event)
        elif kind == "message" and event["severity"] != "info" and event["text"] not in self.messages:
            self.messages.append(event["text"])
        elif kind == "lost":
            self.lost += event["events"]

    @property
    def shown(self) -> Optional[LoopFigures]:
        """The loop to watch: the one that counts, or the first."""
        return next((loop for loop in self.loops if loop.counts), self.loops[0] if self.loops else None)

    def _open(self, event: Event) -> None:
        key = (event["process"], event["name"])
        if key not in self._by_name:
            self._by_name[key] = LoopFigures(*key)
            self.loops.append(self._by_name[key])
        loop = self._by_number[event["process"], event["loop"]] = self._by_name[key]
        loop.counts = event["counts"]
        loop.total = None if event["total"] is None else loop.steps + event["total"]
