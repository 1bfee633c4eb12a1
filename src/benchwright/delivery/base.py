"""The delivery seam: results that are put elsewhere after a run. Entry-point group: `benchwright.deliveries`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Protocol

from benchwright.core.plugins.registry import Registry
from benchwright.core.run import Run
from benchwright.options.table import Options

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


class OpenDelivery(Protocol):
    """What an entry point names."""

    def __call__(self, options: Options, base: Path) -> Delivery | None:
        """None if the options do not ask for it. InvalidInput refuses an option before anything is measured.

        `base`: benchwright's folder, for what cannot be delivered yet.
        """
        ...


DELIVERIES: Registry[OpenDelivery] = Registry(ENTRY_POINT_GROUP, "delivery")
