"""The only composer: target → Benchmarks → Jobs → Events → Run."""

from benchwright.pipeline.executor import executor_for
from benchwright.pipeline.measure import Observer, measure, plan_only
from benchwright.pipeline.outcome import (
    exit_code,
    keep_in_store,
    report_of,
    sorted_by,
    summaries_of,
    write_driver_files,
)
from benchwright.pipeline.resolve import resolve

__all__ = [
    "Observer",
    "executor_for",
    "exit_code",
    "keep_in_store",
    "measure",
    "plan_only",
    "report_of",
    "resolve",
    "sorted_by",
    "summaries_of",
    "write_driver_files",
]
