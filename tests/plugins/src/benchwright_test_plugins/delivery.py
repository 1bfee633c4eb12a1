"""A line for each finished run, in the file that $BENCH_DIARY names."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from benchwright.core.errors import BenchwrightError
from benchwright.core.run import Run
from benchwright.options.table import Options


class Diary:
    """`RUN STATUS`, one line for each run."""

    as_they_end = False  # one line, at the end

    def __init__(self, path: str) -> None:
        self._path = path

    def add(self, run: Run, benchmarks: Collection[str]) -> None:
        pass

    def finish(self, run: Run) -> Iterator[str]:
        try:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(f"{run.id} {run.status.value}\n")
        except OSError as error:
            raise BenchwrightError(f"the run is complete, but not in {self._path}: {error.strerror}") from error
        yield f"noted in {self._path}"

    def catch_up(self, runs: Sequence[Run], tell: Callable[[str], None]) -> bool:
        """A file takes everything at once: nothing ever waits."""
        return True


def open_delivery(options: Options, base: Path) -> Diary | None:
    path = os.environ.get("BENCH_DIARY")
    return Diary(path) if path else None
