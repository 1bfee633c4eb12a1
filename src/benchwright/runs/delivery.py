"""Deliveries of a run: results that are put elsewhere, beside its folder and the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from benchwright.core.errors import BenchwrightError, BrokenPlugin
from benchwright.core.registry import Registry
from benchwright.core.run import Run
from benchwright.options.table import Options

# The delivery seam: results that are put elsewhere after a run. Entry-point group: `benchwright.deliveries`.


ENTRY_POINT_GROUP = "benchwright.deliveries"


class Delivery(Protocol):
    """Puts the results of runs into a folder, a file or a server. It may see several runs, one after another."""

    as_they_end: bool  # whether `add` is called, too, which makes a long run slightly slower

    def add(self, run: Run, benchmarks: Collection[str]) -> None:
        """These benchmarks of a run that goes on have ended. Never raises: `finish` can try again."""
        ...

    def finish(self, run: Run) -> Iterator[str]:
        """The run has ended; yields what a user should know. BenchwrightError: what was asked for is lost, and why."""
        ...

    def catch_up(self, runs: Sequence[Run], tell: Callable[[str], None]) -> bool:
        """Sends what waits from earlier runs, and `runs`, which ended before; `tell` is for the user.

        False if something still waits. A delivery that needs no server has nothing to do.
        """
        ...


class OpenDelivery(Protocol):
    """The object that an entry point names."""

    def __call__(self, options: Options, base: Path) -> Delivery | None:
        """None if the options do not ask for it. InvalidInput refuses an option before anything is measured.

        `base`: benchwright's folder, for what cannot be delivered yet.
        """
        ...


DELIVERIES: Registry[OpenDelivery] = Registry(ENTRY_POINT_GROUP, "delivery")


class NotReported(BenchwrightError):
    """The run is complete, but a report that was asked for could be neither delivered nor kept."""

    exit_code = 1

    def __init__(self, what: str, run: Run) -> None:
        super().__init__(what)
        self.run = run


def open_deliveries(options: Options, base: Path) -> tuple[Delivery, ...]:
    """Opens the deliveries that the options ask for; InvalidInput refuses one now rather than after hours of measuring."""
    loaded = (each for _, each in DELIVERIES.load_all() if not isinstance(each, BrokenPlugin))  # `bw doctor` says so
    return tuple(found for each in loaded if (found := each(options, base)) is not None)


def adding(deliveries: Sequence[Delivery]) -> Callable[[Run, Collection[str]], None] | None:
    """To be called with benchmarks that have ended while the run goes on; None if no delivery wants to know."""
    eager = [delivery for delivery in deliveries if delivery.as_they_end]

    def add(run: Run, benchmarks: Collection[str]) -> None:
        for delivery in eager:
            delivery.add(run, benchmarks)

    return add if eager else None


def deliver(run: Run, deliveries: Sequence[Delivery]) -> Iterator[str]:
    """Delivers the results; yields what a user should know. NotReported comes last, after everything was tried."""
    lost: list[str] = []
    for delivery in deliveries:
        try:
            yield from delivery.finish(run)
        except BenchwrightError as error:
            lost.append(str(error))
    if lost:
        raise NotReported("; ".join(lost), run)
