"""The long table: one row for each raw sample, warm-up included and marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchwright.core.measurement import Measurement, in_order
from benchwright.core.run import Launch, Result, Run
from benchwright.report.export.exported_file import exported_file
from benchwright.report.tables.results import labels_text, revision_of
from benchwright.report.text.csv_cells import write_row, write_rows

COLUMNS = (
    "run",
    "revision",
    "benchmark",
    "job",
    "launch",
    "status",
    "metric",
    "unit",
    "labels",
    "phase",
    "index",
    "value",
)


class Series(NamedTuple):
    """Samples that differ in `index` and `value` only; the fields are the table's columns up to there."""

    run: str
    revision: str  # of the code, such as `main 1a2b3c4d5e+`; empty if unknown
    benchmark: str
    job: str
    launch: int | None
    status: str  # of the launch
    metric: str
    unit: str | None
    labels: str  # a JSON object, empty if there are none
    phase: str  # measured or warmup
    values: Sequence[float]


def series_of(runs: Sequence[Run]) -> Iterator[Series]:
    """Every series of the runs, in order. A warm-up launch is warm-up from beginning to end."""
    for run in runs:
        for result in run.results:
            for launch in result.launches:
                for measurement in launch.measurements:
                    yield from _of_measurement(run, result, launch, measurement)


def _of_measurement(run: Run, result: Result, launch: Launch, measurement: Measurement) -> Iterator[Series]:
    head = (run.id, revision_of(run, result), result.benchmark.name, launch.job, launch.launch, launch.status.value)
    what = (measurement.metric, measurement.unit, labels_text(measurement.labels))
    if launch.warmup:
        yield Series(*head, *what, "warmup", in_order(measurement))
        return
    if measurement.warmup_samples:
        yield Series(*head, *what, "warmup", measurement.warmup_samples)
    yield Series(*head, *what, "measured", measurement.samples)


def export_csv(runs: Sequence[Run], path: Path) -> None:
    """Writes the long table with a header line; numbers so that they read back exactly, nan and inf as such."""
    # A name may hold bytes that are no UTF-8: they are written as question marks.
    with (
        exported_file(path) as aside,
        open(aside, "w", encoding="utf-8", errors="replace", newline="") as file,
    ):
        write_row(file, COLUMNS)
        for series in series_of(runs):
            *same, values = series
            write_rows(file, same, enumerate(values))
