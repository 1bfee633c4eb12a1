"""Compares what a launch wrote with the golden outputs of its test."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchmodels.check.array_files import UnreadableArray, read_array
from benchmodels.check.goldens import golden_error
from benchwright.core.artifact import Artifact
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.status import Reason, Status
from benchwright.record.stream_file import Event
from benchwright.record.verdict import LaunchVerdict

COMPARED = "compared"  # the event of one output
WRITTEN = "written"  # the event of an output file that holds results
ERRORS = ("max_abs", "relative_l2", "cosine", "top1", "top5")
_HIGHER = ("cosine", "top1", "top5")


def check_tolerance(names: Iterable[str], *, where: str | None = None, line: int | None = None) -> None:
    """InvalidInput for a tolerance of something that is no error."""
    for name in names:
        if name not in ERRORS:
            remedy = did_you_mean(name, ERRORS) or f"use {', '.join(ERRORS)}"
            raise InvalidInput(f"'{name}' is not an error that can be tolerated", where=where, line=line, remedy=remedy)


class OutputPair(NamedTuple):
    """An output by its name: the file that the program wrote, and the golden one; None: it is not here."""

    name: str
    got: str
    golden: str | None


def compared(pairs: Iterable[OutputPair], tolerance: Mapping[str, float]) -> list[Event]:
    """One event for each output. A file that is missing or cannot be read makes its output wrong."""
    return [_compared(pair, tolerance) for pair in pairs]


def _compared(pair: OutputPair, tolerance: Mapping[str, float]) -> Event:
    # These import numpy, which only runs with golden outputs need.

    made: Event = {"event": COMPARED, "output": pair.name}
    if pair.golden is None:
        return made | {"wrong": "its golden output is not here; run without --no-setup"}
    if not os.path.isfile(pair.got):
        return made | {"wrong": f"the program did not write {pair.got}"}
    arrays = []
    for path, what in ((pair.got, "the output"), (pair.golden, "the golden")):
        try:
            arrays.append(read_array(path, pair.name))
        except UnreadableArray as error:
            return made | {"wrong": f"{what} {path}: {error}"}
    found = golden_error(pair.name, arrays[0], arrays[1], tolerance)
    figures = {name: value for name, value in found.figures.items() if abs(value) < float("inf")}
    return made | {"figures": figures, "wrong": found.wrong, "worst": found.worst, "statistics": found.statistics}


class GoldenResults:
    """Comparisons of one launch with golden outputs, and whether they passed."""

    def __init__(self, goldens: Iterable[Artifact]) -> None:
        self._wanted = [golden.key for golden in goldens]
        self._compared: dict[str, Event] = {}

    def add(self, event: Event) -> None:
        self._compared[event["output"]] = event

    def __bool__(self) -> bool:
        return bool(self._compared)

    def measurements(self) -> list[Measurement]:
        return [m for event in self._compared.values() for m in _errors(event)]

    def judge(self) -> LaunchVerdict | None:
        wrong = [(name, event["wrong"]) for name, event in self._compared.items() if event.get("wrong")]
        if wrong:
            name, why = wrong[0]
            more = f" (and {len(wrong) - 1} more outputs)" if len(wrong) > 1 else ""
            return LaunchVerdict(Status.FAILED, Reason.INVALID, f"output {name}: {why}{more}")
        missing = [name for name in self._wanted if name not in self._compared]
        if missing:
            detail = f"{', '.join(missing)}: not compared with the golden output"
            return LaunchVerdict(Status.FAILED, Reason.NO_DATA, detail)
        return None

    def facts(self) -> dict[str, object]:
        if not self._compared:
            return {}
        keys = ("figures", "wrong", "worst", "statistics")
        return {"goldens": {name: {key: event.get(key) for key in keys} for name, event in self._compared.items()}}


def _errors(event: Event) -> list[Measurement]:
    return [
        Measurement(
            metric=f"error.{name}",
            unit=None,
            direction=Direction.HIGHER if name in _HIGHER else Direction.LOWER,
            samples=(float(value),),
            source="model",
            labels={"output": event["output"]},
        )
        for name, value in event.get("figures", {}).items()
    ]
