"""The events of one job, sorted by what they are about."""

from __future__ import annotations

from array import array

import msgspec

from benchwright.core.conditions import AFFINITY, SHARED_NODE
from benchwright.core.errors import BenchwrightError
from benchwright.core.note import Note
from benchwright.core.reported import Reported
from benchwright.core.stream_dialect import STREAM_DIALECTS, StreamDialect
from benchwright.record.base import Gatherer, PlainGatherer
from benchwright.record.loops.loops import ITEMS, MEASURED, LoopKey, LoopRecord
from benchwright.record.loops.outside_clock import OutsideClock
from benchwright.record.samples import Samples
from benchwright.record.standstill import is_late
from benchwright.record.stream_file import Event

_MOST_NOTES = 20
_MOST_JOBS = 5


class Fold(msgspec.Struct):
    """The events so far, gathered."""

    loops: dict[LoopKey, LoopRecord] = {}
    loop_names: dict[tuple[int, int], str] = {}
    probes: dict[int, Event] = {}
    samples: Samples = msgspec.field(default_factory=Samples)
    log_values: dict[str, array[float]] = {}
    given: dict[str, dict[int, list[float]]] = {}  # outside of loops: name → process → values
    outside: OutsideClock = msgspec.field(default_factory=OutsideClock)
    reported: Reported = msgspec.field(default_factory=Reported)  # by an instrument that is not ours
    gatherer: Gatherer = msgspec.field(default_factory=PlainGatherer)  # of the benchmark's kind
    dialects: dict[str, StreamDialect | None] = {}  # None: it cannot be loaded
    notes: list[Note] = []
    extraction: Event | None = None
    end: Event | None = None
    start: Event = {}
    unreadable: int = 0
    lost: int = 0
    exited_ns: int | None = None  # when the program ended, whatever its children still do
    late: int = 0  # results that came after that
    pauses: list[Event] = []

    def add(self, event: Event) -> None:
        self.outside.supervisor(event)
        if is_late(event, self.exited_ns):
            self.late += 1
            return
        match event["event"]:
            case "steps":
                self._add_steps(event)
            case "sample":
                self.samples.add(event)
                self.gatherer.sampled(event)
            case "metric":
                values = array("d", event["values"])
                self.log_values.setdefault(str(event["name"]), array("d")).extend(values)
            case "reported":
                self._add_reported(event)
            case "give":
                self._add_given(event)
            case "loop":
                self.loop_names[(event["process"], event["loop"])] = event["name"]
                record = self.loop_of(event)
                record.counts = bool(event.get("counts"))
                record.units[str(event.get("unit") or ITEMS)] = None
            case "measure":
                self.loop_of(event).measure = event
            case "stop":
                self.loop_of(event).stop = event
            case "loop_end":
                self._end_loop(event)
            case "probe":
                self.probes[event["process"]] = event
            case "message":
                self._add_message(event)
            case "unreadable":
                self.unreadable += 1
            case "lost":
                self.lost += event.get("events", 1)
            case "pause":
                self.pauses.append(event)
            case "shared":
                self._add_shared(event)
            case "extraction":
                self.extraction = event
            case "start":
                self._begin(event)
            case "exit":
                self.exited_ns = event["t"]
            case "end":
                self.end = event
                self.samples.ended(event)
            case _:
                self.gatherer.add(event)

    def loop_of(self, event: Event) -> LoopRecord:
        """The record of its loop. Loops of one name that do not count share a record, since each pass has a new number."""
        process, number = event["process"], event["loop"]
        name = self.loop_names.get((process, number), str(number))
        own: LoopKey = (process, name, number)
        key = own if own in self.loops else (process, name, None)
        if key not in self.loops:
            key = own if event["event"] == "loop" and event.get("counts") else key
            rank = self.probes.get(process, {}).get("rank")
            self.loops[key] = LoopRecord(process, name, key=key, rank=rank)
        return self.loops[key]

    def _begin(self, event: Event) -> None:
        self.start = event
        if isinstance(event.get("wall"), int | float) and isinstance(event.get("t"), int):
            self.reported.began = (event["t"], event["wall"])
        if isinstance(event.get("allowed_cores"), int):
            cores = f"{event['allowed_cores']} of {event.get('all_cores')}"
            text = "could use only some of the machine's cores"
            self.notes.append(Note(text=text, evidence=cores, severity="info", kind=AFFINITY))

    def _add_steps(self, event: Event) -> None:
        record = self.loop_of(event)
        record.add_steps(event)
        if event.get("phase") == MEASURED:
            self.outside.steps(record.key, event)

    def _end_loop(self, event: Event) -> None:
        record = self.loop_of(event)
        record.ends.append(event["how"])
        if event["how"] == "break":
            record.break_off()
        if event["how"] == "stopped":
            record.stopped_ns = int(event["t"])

    def _add_given(self, event: Event) -> None:
        for name, value in event["values"].items():
            if isinstance(value, int | float):
                self.given.setdefault(name, {}).setdefault(event.get("process", 0), []).append(float(value))

    def _add_reported(self, event: Event) -> None:
        name = event["dialect"]
        if name not in self.dialects:
            self.dialects[name] = self._dialect(name)
        dialect, self.reported.dialect = self.dialects[name], name
        for line in event["lines"]:
            if dialect is None:
                self.reported.unread()
            else:
                dialect.read(line, event["t"], self.reported)

    def _dialect(self, name: str) -> StreamDialect | None:
        try:
            return STREAM_DIALECTS.load(name)()
        except BenchwrightError as error:
            self.notes.append(Note(text=f"what it reported cannot be read: {error.args[0]}"))
            return None

    def _add_shared(self, event: Event) -> None:
        """Jobs of others on the node, as the scheduler said."""
        jobs = [str(job) for job in event["jobs"]]
        named = f"job{'s' if len(jobs) > 1 else ''} {', '.join(jobs[:_MOST_JOBS])}"
        self.notes.append(Note(text="shared its node with jobs of others", evidence=named, kind=SHARED_NODE))

    def _add_message(self, event: Event) -> None:
        said = ("info", "warning", "error") if event.get("source") == "iterate" else ("warning", "error")
        if event.get("severity") in said and len(self.notes) < _MOST_NOTES:
            text = f"{event.get('source', 'probe')}: {event['text']}"
            self.notes.append(Note(text=text, severity=event["severity"]))
