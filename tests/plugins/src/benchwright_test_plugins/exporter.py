"""The median of each series, for a spreadsheet: `bw export RUN -o FILE --format medians`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from benchwright.core.run import Run
from benchwright.report.export.exported_file import exported_file


class MediansExporter:
    """`run benchmark metric median`, separated by tabs; what has no sample is left out."""

    suffix = ".tsv"

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        lines, left_out = [], []
        for run in runs:
            for result in run.results:
                name = result.benchmark.name
                for measurement in (m for launch in result.counted for m in launch.measurements):
                    if measurement.samples:
                        median = statistics.median(measurement.samples)
                        lines.append(f"{run.id}\t{name}\t{measurement.metric}\t{median}\n")
                    else:
                        left_out.append(f"{measurement.metric} of {name} in {run.id} has no samples")
        with exported_file(Path(target)) as path:
            Path(path).write_text("".join(lines), encoding="utf-8")
        return left_out
