"""What the recorder asks a kind: what its benchmarks' events mean beside loops, samples and logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from benchwright.core.benchmark import Benchmark
from benchwright.core.measurement import Measurement
from benchwright.core.note import Note
from benchwright.record.reading import Event
from benchwright.record.verdict import LaunchVerdict


class Gatherer(Protocol):
    """Takes what a kind wants from the events of one launch. The defaults want nothing: subclass it and change what differs."""

    measures_itself: bool = False  # whether it says itself what its loops mean, and why nothing was measured
    observations: int | None = None  # of voir: how many are to count, if the benchmark's stop rule does not say

    def add(self, event: Event) -> None:
        """One event that the recorder does not know. What it raises counts as an unreadable line."""
        return

    def measurements(self) -> list[Measurement]:
        """Those of its own events."""
        return []

    def interpreted(self, found: list[Measurement]) -> list[Measurement]:
        """All measurements of the launch, renamed or converted to what they mean for this kind."""
        return found

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        """What is wrong with a launch whose process ended well; None if nothing is."""
        return None

    def notes(self) -> list[Note]:
        """What a reader of the results should know, learnt from its own events."""
        return []

    def facts(self) -> dict[str, object]:
        """What to keep with the launch beside its measurements, as JSON values; secrets are removed afterwards."""
        return {}


class PlainGatherer(Gatherer):
    """Takes nothing beside what every launch has."""


class GathersEvents(Protocol):
    """A kind, as the recorder knows it."""

    def gatherer(self, benchmark: Benchmark) -> Gatherer: ...


Kinds = Callable[[Benchmark], GathersEvents]  # a benchmark's kind
