"""Deliveries of a run: results that are put elsewhere, beside its folder and the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from benchwright.core.errors import BenchwrightError, BrokenPlugin
from benchwright.core.run import Run
from benchwright.delivery.base import DELIVERIES, Delivery
from benchwright.options.table import Options


class NotReported(BenchwrightError):
    """The run is complete, but a report that was asked for could be neither delivered nor kept."""

    exit_code = 1

    def __init__(self, what: str, run: Run) -> None:
        super().__init__(what)
        self.run = run


def open_deliveries(options: Options, base: Path) -> tuple[Delivery, ...]:
    """What the options ask for; InvalidInput refuses it now rather than after hours of measuring."""
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
