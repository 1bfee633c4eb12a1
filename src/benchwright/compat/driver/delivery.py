"""`dlbenchmark_result.json`, written after a run of a task file."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.aggregates import aggregate
from benchwright.core.revision import CONTROL
from benchwright.core.run import Run
from benchwright.options.table import Options


class DriverDelivery:
    """Writes the file into the run folder and where the user is, if the run measured tasks. Of an A/B it has the treatment."""

    as_they_end = False  # the file has all tasks or none

    def __init__(self, caller: str) -> None:
        self._caller = caller

    def add(self, run: Run, benchmarks: Collection[str]) -> None:
        pass

    def finish(self, run: Run) -> Iterator[str]:
        run = replace(run, results=tuple(r for r in run.results if r.benchmark.side != CONTROL))
        if not any(r.benchmark.result_prefix for r in run.results):
            return
        from benchwright.compat.driver.result_file import write_driver_result  # here: most runs have no tasks

        folders = [run.folder, self._caller]
        yield from write_driver_result(run, folders, aggregate=aggregate, workers=run.workers).problems

    def catch_up(self, runs: Sequence[Run], tell: Callable[[str], None]) -> bool:
        return True


def open_delivery(options: Options, base: Path) -> DriverDelivery:
    return DriverDelivery(os.getcwd())
