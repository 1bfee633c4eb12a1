"""The events of one job, gathered by what they tell."""

from __future__ import annotations

from array import array

import msgspec

from benchwright.core.events.voir import VoirRecord
from benchwright.core.note import Note
from benchwright.record.base import Gatherer, PlainGatherer
from benchwright.record.loops.loops import MEASURED, LoopKey, LoopRecord
from benchwright.record.loops.outside_clock import OutsideClock
from benchwright.record.reading import Event, decode_object
from benchwright.record.samples import Samples
from benchwright.record.standstill import is_late

_MOST_NOTES = 20


class Fold(msgspec.Struct):
    """What has been gathered from the events so far."""

    loops: dict[LoopKey, LoopRecord] = {}
    loop_names: dict[tuple[int, int], str] = {}
    probes: dict[int, Event] = {}
    samples: Samples = msgspec.field(default_factory=Samples)
    log_values: dict[str, array[float]] = {}
    given: dict[str, dict[int, list[float]]] = {}  # outside of loops: name → process → values
    outside: OutsideClock = msgspec.field(default_factory=OutsideClock)
    voir: VoirRecord = msgspec.field(default_factory=VoirRecord)
    gatherer: Gatherer = msgspec.field(default_factory=PlainGatherer)  # of the benchmark's kind
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
        handler = _HANDLERS.get(event["event"])
        if handler is not None:
            handler(self, event)
        else:
            self.gatherer.add(event)

    def loop_of(self, event: Event) -> LoopRecord:
        """The loop that counts is one; others of a name are taken together, since they get a new number each time."""
        process, number = event["process"], event["loop"]
        name = self.loop_names.get((process, number), str(number))
        own: LoopKey = (process, name, number)
        key = own if own in self.loops else (process, name, None)
        if key not in self.loops:
            key = own if event["event"] == "loop" and event.get("counts") else key
            rank = self.probes.get(process, {}).get("rank")
            self.loops[key] = LoopRecord(process, name, key=key, rank=rank)
        return self.loops[key]


def _start(fold: Fold, event: Event) -> None:
    fold.start = event
    if isinstance(event.get("wall"), int | float) and isinstance(event.get("t"), int):
        fold.voir.began = (event["t"], event["wall"])


def _probe(fold: Fold, event: Event) -> None:
    fold.probes[event["process"]] = event


def _loop(fold: Fold, event: Event) -> None:
    fold.loop_names[(event["process"], event["loop"])] = event["name"]
    fold.loop_of(event).counts = bool(event.get("counts"))


def _steps(fold: Fold, event: Event) -> None:
    record = fold.loop_of(event)
    record.add_steps(event)
    if event.get("phase") == MEASURED:
        fold.outside.steps(record.key, event)


def _measure(fold: Fold, event: Event) -> None:
    fold.loop_of(event).measure = event


def _stop(fold: Fold, event: Event) -> None:
    fold.loop_of(event).stop = event


def _loop_end(fold: Fold, event: Event) -> None:
    record = fold.loop_of(event)
    record.ends.append(event["how"])
    if event["how"] == "break":
        record.break_off()
    if event["how"] == "stopped":
        record.stopped_ns = int(event["t"])


def _sample(fold: Fold, event: Event) -> None:
    fold.samples.add(event)


def _metric(fold: Fold, event: Event) -> None:
    values = array("d", event["values"])
    fold.log_values.setdefault(str(event["name"]), array("d")).extend(values)


def _give(fold: Fold, event: Event) -> None:
    for name, value in event["values"].items():
        if isinstance(value, int | float):
            fold.given.setdefault(name, {}).setdefault(event.get("process", 0), []).append(float(value))


def _voir(fold: Fold, event: Event) -> None:
    for line in event["lines"]:
        said = decode_object(line.encode("utf-8", "replace"))
        if said is None:
            fold.voir.unread()
        else:
            fold.voir.say(said, event["t"])


def _extraction(fold: Fold, event: Event) -> None:
    fold.extraction = event


def _message(fold: Fold, event: Event) -> None:
    if event.get("severity") in ("warning", "error") and len(fold.notes) < _MOST_NOTES:
        fold.notes.append(Note(text=f"{event.get('source', 'probe')}: {event['text']}", severity=event["severity"]))


def _unreadable(fold: Fold, event: Event) -> None:
    fold.unreadable += 1


def _lost(fold: Fold, event: Event) -> None:
    fold.lost += event.get("events", 1)


def _pause(fold: Fold, event: Event) -> None:
    fold.pauses.append(event)


def _exit(fold: Fold, event: Event) -> None:
    fold.exited_ns = event["t"]


def _end(fold: Fold, event: Event) -> None:
    fold.end = event


_HANDLERS = {
    "start": _start,
    "probe": _probe,
    "loop": _loop,
    "steps": _steps,
    "measure": _measure,
    "stop": _stop,
    "loop_end": _loop_end,
    "sample": _sample,
    "metric": _metric,
    "give": _give,
    "voir": _voir,
    "extraction": _extraction,
    "message": _message,
    "unreadable": _unreadable,
    "lost": _lost,
    "pause": _pause,
    "exit": _exit,
    "end": _end,
}
