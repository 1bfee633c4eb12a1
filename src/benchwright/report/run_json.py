"""run.json: statuses and condensed numbers of a run. Raw samples stay in the streams."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.efficiency import Efficiency, share_of_peak
from benchwright.core.measurement import Measurement
from benchwright.core.run import Launch, Result, Run
from benchwright.core.summary import Summary
from benchwright.report.base import Report
from benchwright.report.tables.scores import score_bodies
from benchwright.report.text.numbers import json_body


class JsonReporter:
    """The output of `--json`."""

    name = "json"

    def render(self, report: Report) -> str:
        body = run_body(report.run, report.summaries, report.efficiency, report.added.bodies)
        if report.comparisons:
            from benchwright.report.comparison import comparison_body

            body["comparisons"] = [comparison_body(each) for each in report.comparisons]
        return json.dumps(body | score_bodies(report.score, report.by_rule, report.compared), indent=1) + "\n"


def run_body(
    run: Run,
    summaries: Mapping[str, Sequence[Summary]],
    efficiency: Mapping[str, Sequence[Efficiency]] | None = None,
    added: Mapping[int, Mapping[str, object]] | None = None,
) -> dict[str, object]:
    """The content of run.json and of `--json`; documented in docs/reference/files.md. `added`: what kinds say of results."""
    body: dict[str, object] = {
        "id": run.id,
        "uid": run.uid,
        "name": run.name,
        "status": run.status.value,
        "started": run.started,
        "ended": run.ended,
        "folder": run.folder,
        "machine": run.machine.fingerprint,
        "labels": run.labels,
        **({"revisions": msgspec.to_builtins(run.revisions)} if run.revisions else {}),
        "notes": [msgspec.to_builtins(note) for note in run.notes],
        "results": [
            _result(r, summaries.get(r.benchmark.name, ()), (efficiency or {}).get(r.benchmark.name, ()))
            | dict((added or {}).get(number, {}))
            for number, r in enumerate(run.results)
        ],
        "pairs": _pairs(run),
    }
    return json_body(body)


def _result(result: Result, summaries: Sequence[Summary], efficiency: Sequence[Efficiency]) -> dict[str, object]:
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
        **(_efficiencies(efficiency) if efficiency else {}),
        **({"parameters": result.benchmark.parameters} if result.benchmark.parameters else {}),
        **({"labels": result.benchmark.labels} if result.benchmark.labels else {}),
    }


def _summary(summary: Summary) -> dict[str, object]:
    interval = summary.interval
    return {
        "metric": summary.metric,
        "unit": summary.unit,
        "direction": summary.direction.value,
        "source": summary.source,
        "labels": summary.labels,
        "value": summary.value,
        "interval_95": None if interval is None else [interval.low, interval.high],
        "widened": None if interval is None else interval.widened,
        "launches": summary.launches,
        "values": summary.values,
        "remarks": [{"kind": r.kind, "text": r.text, "advice": r.remedy} for r in summary.remarks],
        "percentiles": [msgspec.to_builtins(p) for p in summary.percentiles],
    }


def _efficiencies(found: Sequence[Efficiency]) -> dict[str, object]:
    share = share_of_peak(found)
    return {"efficiency": [_efficiency(e) for e in found], "limited_by": share and share.limit}


def _efficiency(e: Efficiency) -> dict[str, object]:
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


def _launch(launch: Launch) -> dict[str, object]:
    return {
        "job": launch.job,
        "status": launch.status.value,
        "reason": launch.reason.value if launch.reason else None,
        "detail": launch.detail,
        "warmup": launch.warmup,
        "launch": launch.launch,
        "block": launch.block,
        "position": launch.position,
        "devices": launch.devices,
        "duration_s": launch.duration_s,
        "exit_code": launch.exit_code,
        "samples": [_samples(m) for m in launch.measurements],
        "notes": [msgspec.to_builtins(note) for note in launch.notes],
        "facts": launch.facts,
    }


def _samples(measurement: Measurement) -> dict[str, object]:
    """How many raw samples a launch has of a metric, and what condenses them."""
    return {
        "metric": measurement.metric,
        "labels": measurement.labels,
        "aggregate": measurement.aggregate,
        "measured": len(measurement.samples),
        "warmup": len(measurement.warmup_samples),
    }


def _pairs(run: Run) -> list[dict[str, object]]:
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
