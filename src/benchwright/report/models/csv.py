"""Models as comma-separated values: one row for each result, MLAgility's columns first, then ours."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.results.efficiency import BYTES
from benchwright.core.results.summary import Summary
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.report.base import Report
from benchwright.report.csv_table import notes_text
from benchwright.report.models.columns import CALLS, ITEMS
from benchwright.report.models.facts import checked, fact, is_model, step_outcome, steps_done
from benchwright.report.models.rows import ModelRow, model_rows
from benchwright.report.text.csv_cells import write_row
from benchwright.report.text.remarks import noted

# Of MLAgility's report, in its order; times in milliseconds.
THEIRS = (
    "model_name",
    "author",
    "model_class",
    "params",
    "hash",
    "license",
    "task",
    "groq_chips_used",
    "groq_estimated_latency",
    "nvidia_latency",
    "x86_latency",
    "onnx_exported",
    "onnx_optimized",
    "onnx_converted",
)
OURS = (
    "run",
    "benchmark",
    "script",
    "place",
    "runtime",
    "runtime_version",
    "device",
    "provider",
    "precision",
    "tf32",
    "threads",
    "inputs",
    "items",
    "items_from",
    "status",
    "reason",
    "detail",
    "launches",
    "latency_ms",
    "latency_low_ms",
    "latency_high_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "p99_bound_ms",
    "samples",
    "items_per_s",
    "calls_per_s",
    "streams",
    "streams_items_per_s",
    "streams_calls_per_s",
    "vs_eager",
    "vs_eager_doubt",
    "error_relative_l2",
    "error_max_abs",
    "error_cosine",
    "outputs",
    "outputs_detail",
    "reference",
    "load_s",
    "build_s",
    "first_run_s",
    "to_first_result_s",
    "memory_bytes",
    "device_memory_bytes",
    "flops_per_call",
    "flop_per_s",
    "of_peak",
    "why_no_share",
    "bytes_per_s",
    "notes",
)
Cells = dict[str, object]


def models_csv(reports: Sequence[Report]) -> str:
    """One table for all of them. Columns for parameters, labels and steps of builds follow as far as any row has them."""
    rows = [row for report in reports for row in _rows(report)]
    added = sorted({name for row in rows for name in row if name not in THEIRS and name not in OURS}, key=_order)
    heads = (*THEIRS, *OURS, *added)
    text = io.StringIO()
    write_row(text, heads)
    for row in rows:
        write_row(text, [row.get(name, "") for name in heads])
    return text.getvalue()


def _rows(report: Report) -> list[Cells]:
    """In the order of the run."""
    rows = {row.number: _cells(row, report.run) for row in model_rows(report) if not _told_elsewhere(row)}
    plain = enumerate(report.run.results)
    rows |= {number: _script_cells(result, report.run) for number, result in plain if not is_model(result)}
    return [rows[number] for number in sorted(rows)]


def _script_cells(result: Result, run: Run) -> Cells:
    """Of a script without a model, how it ended."""
    benchmark = result.benchmark
    argv = benchmark.workload.argv if isinstance(benchmark.workload, Command) else ()
    path = next((word for word in argv[1:] if word.endswith(".py")), benchmark.source)
    cells = _of_script(path, benchmark.labels) | _ending(result) | _added(benchmark)
    cells |= {"run": run.id, "benchmark": benchmark.name, "script": path, "notes": notes_text(run, result)}
    if result.status is Status.OK:
        cells["detail"] = "no model was found in it"
    return {name: "" if value is None else value for name, value in cells.items()}


def _told_elsewhere(row: ModelRow) -> bool:
    """A profile that went well has no figure of the whole model."""
    return row.model.profile and row.result.status is Status.OK and not row.measured


def _order(name: str) -> tuple[int, str]:
    return ("parameter.", "label.", "build.").index(name.partition(".")[0] + "."), name


def _cells(row: ModelRow, run: Run) -> Cells:
    result = row.result
    cells: Cells = _theirs(row, run) | _about(row, run) | _figures(row) | _outputs(row)
    cells |= _added(result.benchmark) | {"notes": notes_text(run, result)}
    cells |= {f"build.{step}_s": seconds for step, seconds in steps_done(row.builders).items()}
    return {name: "" if value is None else value for name, value in cells.items()}


def _added(benchmark: Benchmark) -> Cells:
    cells: Cells = {f"parameter.{name}": value for name, value in benchmark.parameters.items()}
    return cells | {f"label.{name}": value for name, value in benchmark.labels.items()}


def _of_script(path: str, labels: Mapping[str, str]) -> Cells:
    name = labels.get("name") or os.path.splitext(os.path.basename(path))[0]
    return {"model_name": name, **{key: labels.get(key) for key in ("author", "license", "task")}}


def _ending(result: Result) -> Cells:
    reason = result.reason.value if result.reason else None
    notes = "; ".join(map(str, noted(result))) or None
    return {"status": result.status.value, "reason": reason, "detail": result.detail, "notes": notes}


def _theirs(row: ModelRow, run: Run) -> Cells:
    model, labels = row.model, row.result.benchmark.labels
    path = model.script or model.file or ""
    latency = _milliseconds(row.latency) if row.result.status is Status.OK else None
    return {
        **_of_script(path, labels),
        "model_class": model.class_,
        "params": row.parameter_count or None,
        "hash": model.identity,
        "nvidia_latency": latency if _on_nvidia(row) else None,
        "x86_latency": latency if model.device == "cpu" and run.machine.architecture in ("x86_64", "AMD64") else None,
        **_onnx_steps(row),
    }


def _on_nvidia(row: ModelRow) -> bool:
    provider = str((fact(row.result, "runtime") or {}).get("provider", ""))
    return row.model.device.startswith("cuda") and "ROCM" not in provider.upper() and "HIP" not in provider.upper()


def _onnx_steps(row: ModelRow) -> Cells:
    """Only for runtimes that build from ONNX; elsewhere these steps produce something else."""
    runtime, result = row.model.runtime, row.result
    through = _builds_from_onnx(runtime)
    return {
        "onnx_exported": step_outcome(result, "export") if through else None,
        "onnx_optimized": step_outcome(result, "optimise") if through else None,
        "onnx_converted": step_outcome(result, "convert") if runtime.startswith("onnxruntime") else None,
    }


@lru_cache(maxsize=100)
def _builds_from_onnx(runtime: str) -> bool:
    from benchmodels.runtimes.registry import UnknownRuntime, runtime_named

    try:
        return runtime_named(runtime).through_onnx
    except UnknownRuntime:  # a plug-in of the environment that was measured
        return False


def _about(row: ModelRow, run: Run) -> Cells:
    model, result = row.model, row.result
    runtime: dict[str, Any] = fact(result, "runtime") or {}
    tried = result.benchmark.withheld is None
    return {
        "run": run.id,
        "benchmark": result.benchmark.name,
        "script": model.script or model.file,
        "place": model.place,
        "runtime": model.runtime if tried else None,
        "runtime_version": runtime.get("version"),
        "device": model.device if tried else None,
        "provider": runtime.get("provider"),
        "precision": row.precision if tried else None,
        "tf32": row.tf32,
        "threads": runtime.get("threads"),
        "inputs": "; ".join(map(str, row.inputs)),
        "items": row.items,
        "items_from": row.items_from,
        **_ending(result),
    }


def _figures(row: ModelRow) -> Cells:
    latency, rate, streams = row.latency, row.figure("rate"), row.figure("throughput.streams")
    percentiles = {p.percent: p for p in latency.percentiles} if latency is not None else {}
    p99 = percentiles.get(99.0)
    build = row.build_s
    interval = latency.interval if latency is not None else None
    return {
        "launches": latency.launches if latency is not None else None,
        "latency_ms": _milliseconds(latency),
        "latency_low_ms": interval.low * 1e3 if interval is not None else None,
        "latency_high_ms": interval.high * 1e3 if interval is not None else None,
        **{f"p{percent:g}_ms": p.value * 1e3 for percent, p in percentiles.items() if percent in (90.0, 95.0, 99.0)},
        "p99_bound_ms": p99.bound * 1e3 if p99 is not None and p99.bound is not None else None,
        "samples": next((p.samples for p in percentiles.values()), None) or _samples(row),
        "items_per_s": _in(rate, ITEMS),
        "calls_per_s": _per_call(rate, row),
        "streams": streams.labels.get("streams") if streams is not None else None,
        "streams_items_per_s": _in(streams, ITEMS),
        "streams_calls_per_s": _per_call(streams, row),
        "vs_eager": row.speedup,
        "vs_eager_doubt": row.speedup_doubt,
        "load_s": _value(row.figure("time.load")),
        "build_s": build if row.measured or build else None,
        "first_run_s": _value(row.figure("time.first_run")),
        "to_first_result_s": _value(row.figure("time.to_first_result")),
        "memory_bytes": _value(row.figure("memory.host")),
        "device_memory_bytes": _value(row.figure("memory.device")),
        "flops_per_call": row.flops,
        **_efficiency(row),
    }


def _efficiency(row: ModelRow) -> Cells:
    moved = next((e for e in row.efficiency if e.work.quantity == BYTES), None)
    return {
        "flop_per_s": row.flop_per_s,
        "of_peak": row.of_peak,
        "why_no_share": row.why_no_share,
        "bytes_per_s": moved.achieved if moved is not None else None,
    }


def _outputs(row: ModelRow) -> Cells:
    """`outputs`: right, wrong, or nothing claimed; `outputs_detail`: why."""
    found = checked(row.result)
    figures = (fact(row.result, "check") or {}).get("figures") or {}
    if found is None:
        return {}
    return {
        "error_relative_l2": found.error,
        "error_max_abs": figures.get("max_abs"),
        "error_cosine": figures.get("cosine"),
        "outputs": "wrong" if not found.ok else "right" if found.claimed else "nothing claimed",
        "outputs_detail": found.detail,
        "reference": found.reference,
    }


def _samples(row: ModelRow) -> int | None:
    counts = [len(m.samples) for x in row.result.counted for m in x.measurements if m.metric == "latency"]
    return sum(counts) if counts and row.measured else None


def _in(summary: Summary | None, unit: str) -> float | None:
    return summary.value if summary is not None and summary.unit == unit else None


def _per_call(summary: Summary | None, row: ModelRow) -> float | None:
    """Calls, whatever it counts."""
    if summary is None or summary.unit == CALLS:
        return _value(summary)
    return summary.value / row.items if row.items else None


def _milliseconds(summary: Summary | None) -> float | None:
    return None if summary is None else summary.value * 1e3


def _value(summary: Summary | None) -> float | None:
    return None if summary is None else summary.value
