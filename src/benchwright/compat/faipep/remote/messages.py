"""The messages of FAI-PEP's remote reporter: one for each record. Numbers stay numbers, with all their digits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from benchwright.compat.faipep.records import Record
from benchwright.compat.faipep.reports import HarnessReport, encoded

_NUMBERS = ("time", "commit_time", "control_commit_time")
_SUMMARIES = {"summary": "", "control_summary": "control_", "diff_summary": "diff_"}
_COUNTS = ("regressed", "num_runs")
_TEXTS = ("type", "metric", "unit", "info_string")
_VECTORS = ("values", "control_values")


def logs_of(report: HarnessReport, category: str) -> list[dict[str, object]]:
    """The `logs` of one request: all records of a test."""
    return [
        {"category": category, "message": encoded(message).decode(), "line_escape": False}
        for message in _messages(report)
    ]


def _messages(report: HarnessReport) -> Iterator[dict[str, object]]:
    base = {name: report.meta[name] for name in _NUMBERS if name in report.meta}
    about = {name: _text(value) for name, value in report.meta.items() if name not in _NUMBERS}
    for record in report.records:
        texts = {name: _text(record[name]) for name in _TEXTS if record.get(name) is not None}
        yield {
            "int": base | _numbers(record),
            "normal": about | texts | {"message_id": _identity(report, record)},
            "normvector": {name: record[name] for name in _VECTORS if name in record},
        }


def _numbers(record: Record) -> dict[str, object]:
    found = {name: record[name] for name in _COUNTS if record.get(name) is not None}
    for key, prefix in _SUMMARIES.items():
        summary = record.get(key)
        if isinstance(summary, Mapping):
            found |= {f"{prefix}{name}": value for name, value in summary.items() if value is not None}
    return found


def _identity(report: HarnessReport, record: Record) -> str:
    """The same each time it is sent: a message may arrive twice, and the server can tell."""
    parts = [report.meta.get(key) for key in ("run", "time", "net_name", "identifier", "metric", "backend")]
    parts += [record["type"], record["metric"], record.get("values")]
    return hashlib.sha256(encoded(parts)).hexdigest()[:32]


def _text(value: object) -> str:
    return value if isinstance(value, str) else encoded(value).decode()
