"""Our own formats as exporters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchwright.core.run import Run
from benchwright.report.export.long_table import export_csv
from benchwright.report.export.parquet import export_parquet
from benchwright.report.export.whole_runs import export_json


class JsonExporter:
    suffix = ".json"

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        export_json(runs, Path(target))
        return ()


class CsvExporter:
    suffix = ".csv"

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        export_csv(runs, Path(target))
        return ()


class ParquetExporter:
    suffix = ".parquet"

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        export_parquet(runs, Path(target))
        return ()
