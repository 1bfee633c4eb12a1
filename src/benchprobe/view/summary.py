"""The figures of a stream so far, for the dashboard and the summary."""

from __future__ import annotations

from array import array
from statistics import median
from typing import Any, Dict, List, Optional, Tuple

from benchprobe.stream.events import given_values

KEPT_STEPS = 1 << 20  # more are counted but no longer part of the median

Event = Dict[str, Any]


class Totals:
    """Totals over the steps of one phase of a loop."""

    def __init__(self) -> None:
        self.steps = self.host_ns = self.wait_ns = 0
        self.step_ns = array("q")
        self.whole_ns = 0  # with a device: from synchronisation to synchronisation
        self.items: Optional[int] = 0  # None: unknown for some steps
        self._last: Optional[Tuple[int, int, int, Optional[int]]] = None  # of the newest step: host, wait, own, items

    def add(self, event: Event, skip: int = 0) -> None:
        """Adds the steps of an event but for the first `skip` of them."""
        step_ns = event["step_ns"][skip:]
        device_ns = event.get("device_ns") or event["step_ns"]
        self.steps += len(step_ns)
        self.host_ns += sum(step_ns)
        self.wait_ns += sum(event["wait_ns"][skip:])
        self.whole_ns += event["window_ns"] - sum(device_ns[:skip]) if "window_ns" in event else sum(step_ns)
        if len(self.step_ns) < KEPT_STEPS:
            self.step_ns.extend(device_ns[skip:])
        items = event["items"]
        sizes = items[skip:] if isinstance(items, list) else [items] * len(step_ns)
        self.items = None if self.items is None or None in sizes else self.items + sum(sizes)
        if step_ns:
            self._last = (step_ns[-1], event["wait_ns"][-1], device_ns[-1], sizes[-1])

    def drop_last(self) -> None:
        """The newest step was left by `break`: it does not count, unless it is the only one."""
        if self._last is None or self.steps < 2:
            return
        host, wait, own, items = self._last
        self._last = None
        self.steps -= 1
        self.host_ns -= host
        self.wait_ns -= wait
        self.whole_ns -= own
        if self.step_ns and len(self.step_ns) == self.steps + 1:
            self.step_ns.pop()
        if self.items is not None:
            self.items -= items or 0


class LoopFigures:
    """All passes of a process through the loops of one name.

    Figures of the measured steps or, if it ended during warm-up, of all steps but the first, which does one-time work.
    """

    def __init__(self, process: int, name: str) -> None:
        self.process, self.name = process, name
        self.counts = False
        self.total: Optional[int] = None
        self.unit: Optional[str] = None  # of its items
        self.steps = self.warmup_steps = 0
        self.cut_short = False  # it had not stabilised when warm-up reached its limit
        self.last_loss: Any = None
        self._measured = Totals()
        self._warmup = Totals()

    def add(self, event: Event) -> None:
        step_ns = event["step_ns"]
        losses = event.get("given", {}).get("loss")
        if losses:
            self.last_loss = given_values(losses, len(step_ns))[1][-1]
        if event["phase"] == "warmup":
            self.warmup_steps += len(step_ns)
            self._warmup.add(event, skip=0 if self.steps else 1)
        elif event["phase"] == "measured":
            self._measured.add(event)
        self.steps += len(step_ns)

    def break_off(self) -> None:
        """Its newest step was left by `break` or `return`."""
        self._shown.drop_last()

    @property
    def measured_steps(self) -> int:
        return self._measured.steps

    @property
    def median_ms(self) -> Optional[float]:
        return median(self._shown.step_ns) / 1e6 if self._shown.step_ns else None

    @property
    def rate(self) -> Optional[Tuple[float, str]]:
        """Per second, and of what."""
        shown = self._shown
        if not shown.whole_ns:
            return None
        if shown.items is None:
            return shown.steps / shown.whole_ns * 1e9, "steps/s"
        return shown.items / shown.whole_ns * 1e9, f"{self.unit or 'items'}/s"

    @property
    def waiting_percent(self) -> Optional[float]:
        return 100 * self._shown.wait_ns / self._shown.host_ns if self._shown.host_ns else None

    @property
    def _shown(self) -> Totals:
        return self._measured if self._measured.steps else self._warmup

    def as_dict(self) -> Dict[str, Any]:
        rate, unit = self.rate or (None, None)
        steps = {"steps": self.steps, "warmup_steps": self.warmup_steps, "measured_steps": self.measured_steps}
        figures = {"median_step_ms": self.median_ms, "rate": rate, "rate_unit": unit}
        about = {"waiting_percent": self.waiting_percent, "last_loss": self.last_loss}
        return {"process": self.process, "loop": self.name, **steps, **figures, **about}


class StreamSummary:
    """Takes the events of a stream, with processes in any order."""

    def __init__(self) -> None:
        self.loops: List[LoopFigures] = []
        self.messages: List[str] = []
        self.lost = 0
        self._by_number: Dict[Tuple[int, int], LoopFigures] = {}
        self._by_name: Dict[Tuple[int, str], LoopFigures] = {}

    def add(self, event: Event) -> None:
        kind = event.get("event")
        loop = self._by_number.get((event.get("process", 0), event.get("loop", 0)))
        if kind == "loop":
            self._open(event)
        elif kind == "message" and event["severity"] != "info" and event["text"] not in self.messages:
            self.messages.append(event["text"])
        elif kind == "lost":
            self.lost += event["events"]
        elif loop is not None and kind == "steps":
            loop.add(event)
        elif loop is not None and kind == "measure":
            loop.cut_short = event["warmup"] == "cap"
        elif loop is not None and kind == "loop_end" and event["how"] == "break":
            loop.break_off()

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
        if event["counts"]:  # only one loop of a process does
            for other in self.loops:
                other.counts = other.counts and other.process != loop.process
        loop.counts = event["counts"]
        loop.unit = event.get("unit")
        loop.total = None if event["total"] is None else loop.steps + event["total"]
