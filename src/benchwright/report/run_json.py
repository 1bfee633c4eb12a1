"""run.json: statuses and condensed numbers of a run. Raw samples stay in the streams."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchwright.core.measurement import Measurement
from benchwright.core.model import Model
from benchwright.core.results.efficiency import Efficiency
from benchwright.core.results.summary import Summary
from benchwright.core.run import Launch, Result, Run
from benchwright.report.base import Report
from benchwright.report.models.rows import ModelRow, rows_of
from benchwright.report.score.json import score_bodies

_OF_MODEL = (
    *("script", "args", "file", "class", "identity", "weights", "parameters", "place", "inputs"),
    *("items", "items_from", "set_to_eval"),
    *("runtime", "device", "precision", "threads", "streams", "profile", "source_note"),
)


class JsonReporter:
    """What `--json` prints."""

    name = "json"

    def render(self, report: Report) -> str:
        body = run_body(report.run, report.summaries, report.efficiency)
        return json.dumps(body | score_bodies(report), indent=1) + "\n"


def run_body(
    run: Run, summaries: Mapping[str, Sequence[Summary]], efficiency: Mapping[str, Sequence[Efficiency]] | None = None
) -> dict[str, Any]:
    """What run.json holds and `--json` prints; documented in docs/reference/files.md."""
    rows = {row.number: row for row in rows_of(run.results, summaries, efficiency or {})}
    return {
        "id": run.id,
        "uid": run.uid,
        "name": run.name,
        "status": run.status.value,
        "started": run.started,
        "ended": run.ended,
        "folder": run.folder,
        "machine": run.machine.fingerprint,
        "labels": run.labels,
        "notes": [msgspec.to_builtins(note) for note in run.notes],
        "results": [
            _result(r, summaries.get(r.benchmark.name, ()), (efficiency or {}).get(r.benchmark.name, ()))
            | _model(r, rows.get(number))
            for number, r in enumerate(run.results)
        ],
        "pairs": _pairs(run),
    }


def _result(result: Result, summaries: Sequence[Summary], efficiency: Sequence[Efficiency]) -> dict[str, Any]:
    return {
        "benchmark": result.benchmark.name,
        "source": result.benchmark.source,
        "status": result.status.value,
        "reason": result.reason.value if result.reason else None,
        "detail": result.detail,
        "notes": result.benchmark.notes,
        "overlap": result.overlap,
        "weight": result.benchmark.weight,
        "checks": [msgspec.to_builtins(check) for check in result.checks],
        "metrics": [_summary(s) for s in summaries],
        "launches": [_launch(x) for x in result.launches],
        **({"efficiency": [_efficiency(e) for e in efficiency]} if efficiency else {}),
    }


def _model(result: Result, row: ModelRow | None) -> dict[str, Any]:
    """Of a model: what it is, and on what it was measured; of anything that was swept or labelled, how."""
    benchmark, workload = result.benchmark, result.benchmark.workload
    added: dict[str, Any] = {}
    if benchmark.parameters:
        added["parameters"] = benchmark.parameters
    if benchmark.labels:
        added["labels"] = benchmark.labels
    if isinstance(workload, Model):
        told = {"items": row.items, "items_from": row.items_from} if row is not None else {}
        body = msgspec.to_builtins(workload) | told
        against = {"vs_eager": row and row.speedup, "vs_eager_doubt": row and row.speedup_doubt}
        added["model"] = {name: body.get(name) for name in _OF_MODEL} | against
    return added


def _summary(summary: Summary) -> dict[str, Any]:
    interval = summary.interval
    return {
        "metric": summary.metric,
        "unit": summary.unit,
        "direction": summary.direction.value,
        "source": summary.source,
        "labels": summary.labels,
        "value": _number(summary.value),
        "interval_95": None if interval is None else [interval.low, interval.high],
        "widened": None if interval is None else interval.widened,
        "launches": summary.launches,
        "values": [_number(v) for v in summary.values],
        "remarks": [{"kind": r.kind, "text": r.text, "advice": r.remedy} for r in summary.remarks],
        "percentiles": [msgspec.to_builtins(p) for p in summary.percentiles],
    }


def _efficiency(e: Efficiency) -> dict[str, Any]:
    return {
        "quantity": e.work.quantity,
        "kind": e.work.kind or None,
        "place": e.work.place,
        "per_item": e.per_item,
        "achieved": e.achieved,
        "unit": e.unit,
        "peak": None if e.peak is None else e.peak.value,
        "peak_benchmark": None if e.peak is None else e.peak.benchmark,
        "peak_run": None if e.peak is None else e.peak.run,
        "peak_cores": None if e.peak is None else e.peak.cores,
        "share": e.share,
        "why_no_share": e.why_no_share,
    }


def _launch(launch: Launch) -> dict[str, Any]:
    return {
        "job": launch.job,
        "status": launch.status.value,
        "reason": launch.reason.value if launch.reason else None,
        "detail": launch.detail,
        "warmup": launch.warmup,
        "repeat": launch.repeat,
        "block": launch.block,
        "position": launch.position,
        "devices": launch.devices,
        "duration_s": launch.duration_s,
        "exit_code": launch.exit_code,
        "samples": [_samples(m) for m in launch.measurements],
        "notes": [msgspec.to_builtins(note) for note in launch.notes],
        "facts": launch.facts,
    }


def _samples(measurement: Measurement) -> dict[str, Any]:
    """How many raw samples a launch has of a metric, and what condenses them."""
    return {
        "metric": measurement.metric,
        "labels": measurement.labels,
        "aggregate": measurement.aggregate,
        "measured": len(measurement.samples),
        "warmup": len(measurement.warmup_samples),
    }


def _pairs(run: Run) -> list[dict[str, Any]]:
    """Interleaved launches: which jobs belong to the same block, in the order they ran."""
    blocks: dict[int, list[Launch]] = {}
    for result in run.results:
        for launch in result.launches:
            if launch.block is not None:
                blocks.setdefault(launch.block, []).append(launch)
    return [
        {"block": block, "jobs": [x.job for x in sorted(launches, key=lambda x: x.position)]}
        for block, launches in sorted(blocks.items())
    ]


def _number(value: float) -> float | str:
    """JSON has no NaN: what is not finite is written as text."""
    return value if math.isfinite(value) else str(value)
