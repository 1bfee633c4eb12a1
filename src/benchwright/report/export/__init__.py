"""Raw data of Runs as files for other programs: JSON that can be read back, long tables as CSV and Parquet.

docs/reference/export.md documents them. Files are written aside and renamed.
"""

from benchwright.report.export.long_table import export_csv
from benchwright.report.export.parquet import export_parquet
from benchwright.report.export.whole_runs import export_json, read_export

__all__ = ["export_csv", "export_json", "export_parquet", "read_export"]
