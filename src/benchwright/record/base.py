"""The recorder's interface to a kind: the meaning of its own events, besides loops, samples and logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from benchwright.core.benchmark import Benchmark
from benchwright.core.measurement import Measurement
from benchwright.core.note import Note
from benchwright.record.stream_file import Event
from benchwright.record.verdict import LaunchVerdict


class Gatherer(Protocol):
    """Takes what a kind needs from the events of one launch. By default nothing: override what differs."""

    measures_itself: bool = False  # whether it judges its loops itself, and says why nothing was measured
    stopped_early: bool = (
        False  # whether the program was ended in the middle, measured enough: how it ended is not judged
    )
    watches_waiting: bool = False  # whether it says itself that its program waited for a core
    span: tuple[int, int] | None = None  # when it measured, in ns, if not in a loop
    observations: int | None = None  # of a runner: how many count, if the benchmark's stop rule does not say

    def add(self, event: Event) -> None:
        """An event that the recorder does not know. If this raises, the line counts as unreadable."""
        return

    def sampled(self, event: Event) -> None:
        """A sampler's reading, beside what is made of it for every launch."""
        return

    def measurements(self) -> list[Measurement]:
        """Measurements from its own events."""
        return []

    def interpreted(self, found: list[Measurement]) -> list[Measurement]:
        """All measurements of the launch, renamed or converted to what they mean for this kind."""
        return found

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        """The fault of a launch whose process ended well; None if it has none."""
        return None

    def keeps(self, verdict: LaunchVerdict, found: list[Measurement]) -> bool:
        """Whether what was measured counts although the launch failed so: only what came afterwards was cut short."""
        return False

    def spent(self, began: int, ended: int) -> str:
        """Where the time went, for a launch that took too long; empty if that is not known. Times are in ns."""
        return ""

    def last_part(self) -> str:
        """The part of its work in which the program ended; empty: not known."""
        return ""

    def notes(self) -> list[Note]:
        """Notes for readers of the results, from its own events."""
        return []

    def facts(self) -> dict[str, object]:
        """Facts to store with the launch besides its measurements, as JSON values; secrets are removed later."""
        return {}


class PlainGatherer(Gatherer):
    """Takes nothing extra."""


class GathersEvents(Protocol):
    """A kind, as the recorder knows it."""

    def gatherer(self, benchmark: Benchmark) -> Gatherer: ...


Kinds = Callable[[Benchmark], GathersEvents]  # a benchmark's kind
