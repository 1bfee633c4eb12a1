"""The events of one job, gathered by what they tell."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchwright.domain.run import Note
from benchwright.domain.voir_record import VoirRecord
from benchwright.recorder.loops import LoopRecord
from benchwright.recorder.models import ModelRecord
from benchwright.recorder.reading import Event, decode_object
from benchwright.recorder.samples import Samples

_MOST_NOTES = 20


@dataclass
class Fold:
    """What has been gathered from the events so far."""

    loops: dict[tuple[int, str], LoopRecord] = field(default_factory=dict)
    loop_names: dict[tuple[int, int], str] = field(default_factory=dict)
    probes: dict[int, Event] = field(default_factory=dict)
    samples: Samples = field(default_factory=Samples)
    log_values: dict[str, list[float]] = field(default_factory=dict)
    given: dict[str, list[float]] = field(default_factory=dict)
    voir: VoirRecord = field(default_factory=VoirRecord)
    model: ModelRecord = field(default_factory=ModelRecord)
    notes: list[Note] = field(default_factory=list)
    extraction: Event | None = None
    end: Event | None = None
    start: Event = field(default_factory=dict)
    unreadable: int = 0
    lost: int = 0

    def add(self, event: Event) -> None:
        handler = _HANDLERS.get(event["event"])
        if handler is not None:
            handler(self, event)

    def loop_of(self, event: Event) -> LoopRecord:
        process = event["process"]
        name = self.loop_names.get((process, event["loop"]), str(event["loop"]))
        rank = self.probes.get(process, {}).get("rank")
        return self.loops.setdefault((process, name), LoopRecord(process, name, rank=rank))


def _start(fold: Fold, event: Event) -> None:
    fold.start = event
    if isinstance(event.get("wall"), int | float) and isinstance(event.get("t"), int):
        fold.voir.began = (event["t"], event["wall"])


def _probe(fold: Fold, event: Event) -> None:
    fold.probes[event["process"]] = event


def _loop(fold: Fold, event: Event) -> None:
    fold.loop_names[(event["process"], event["loop"])] = event["name"]
    record = fold.loop_of(event)
    record.counts = record.counts or bool(event.get("counts"))


def _steps(fold: Fold, event: Event) -> None:
    fold.loop_of(event).add_steps(event)


def _measure(fold: Fold, event: Event) -> None:
    fold.loop_of(event).measure = event


def _stop(fold: Fold, event: Event) -> None:
    fold.loop_of(event).stop = event


def _loop_end(fold: Fold, event: Event) -> None:
    fold.loop_of(event).ends.append(event["how"])


def _sample(fold: Fold, event: Event) -> None:
    fold.samples.add(event)


def _metric(fold: Fold, event: Event) -> None:
    fold.log_values.setdefault(event["name"], []).extend(event["values"])


def _give(fold: Fold, event: Event) -> None:
    for name, value in event["values"].items():
        if isinstance(value, int | float):
            fold.given.setdefault(name, []).append(float(value))


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


def _model(fold: Fold, event: Event) -> None:
    fold.model.model = event


def _runtime(fold: Fold, event: Event) -> None:
    fold.model.runtime = event


def _build_step(fold: Fold, event: Event) -> None:
    fold.model.build.append(event)


def _measured(fold: Fold, event: Event) -> None:
    fold.model.add_figure(event)


def _check(fold: Fold, event: Event) -> None:
    fold.model.check = event


def _failure(fold: Fold, event: Event) -> None:
    fold.model.failure = fold.model.failure or event


def _unreadable(fold: Fold, event: Event) -> None:
    fold.unreadable += 1


def _lost(fold: Fold, event: Event) -> None:
    fold.lost += event.get("events", 1)


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
    "model": _model,
    "runtime": _runtime,
    "build_step": _build_step,
    "measured": _measured,
    "check": _check,
    "failure": _failure,
    "unreadable": _unreadable,
    "lost": _lost,
    "end": _end,
}
