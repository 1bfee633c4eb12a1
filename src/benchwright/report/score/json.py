"""Scores as `--json` prints them; documented in docs/reference/files.md."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from benchwright.core.results.score import (
    BenchmarkScore,
    MilabenchRow,
    MilabenchScore,
    ScoreComparison,
    ScoreRatio,
    SuiteScore,
)
from benchwright.core.results.summary import Interval
from benchwright.report.base import Report
from benchwright.report.score.screen import compared_words, no_interval_words


def score_bodies(report: Report) -> dict[str, Any]:
    """`score` and, if it was asked for, `milabench`; empty for what has no score."""
    body: dict[str, Any] = {}
    if report.score is not None:
        body["score"] = score_body(report.score)
    if report.milabench is not None:
        body["milabench"] = milabench_body(report.milabench)
    if report.compared is not None:
        body["compared"] = compared_body(report.compared)
    return body


def score_body(score: SuiteScore) -> dict[str, Any]:
    return {
        "value": score.value,
        "why_no_interval": no_interval_words(score),
        "expected": score.expected,
        "counted": score.counted,
        "failed": score.failed,
        "missing": score.missing,
        "failure_rate": score.failure_rate,
        "price": score.price,
        "price_per_score": score.price_per_score,
        "benchmarks": [_benchmark(s) for s in score.benchmarks],
    }


def _benchmark(s: BenchmarkScore) -> dict[str, Any]:
    return {
        "benchmark": s.name,
        "status": s.status.value,
        "weight": s.weight,
        "score": s.value,
        "interval_95": _ends(s.interval),
        "why_none": s.why,
        "metric": s.metric,
        "unit": s.unit,
        "median": s.median,
        "processes": s.processes,
        "devices": s.devices,
        "overlap": s.overlap,
        "peak_bytes": s.peak_bytes,
        "peak_metric": s.peak_metric,
        "gpu_peak_bytes": s.gpu_peak_bytes,
        "joules_per_item": s.joules_per_item,
        "of_peak": s.of_peak,
        "per_device": [msgspec.to_builtins(seat) for seat in s.seats],
    }


def milabench_body(score: MilabenchScore) -> dict[str, Any]:
    return {
        "score": _number(score.value),
        "failure_rate": score.failure_rate,
        "passed": score.passed,
        "price": score.price,
        "price_per_score": score.price_per_score,
        "benchmarks": [_row(row) for row in score.rows],
    }


def compared_body(compared: ScoreComparison) -> dict[str, Any]:
    return {
        "control": compared.control,
        "score": None if compared.whole is None else _ratio(compared.whole),
        "benchmarks": [{"benchmark": r.name} | _ratio(r) for r in compared.benchmarks],
        "left_out": list(compared.left_out),
        "doubts": compared_words(compared),
    }


def _ratio(r: ScoreRatio) -> dict[str, Any]:
    return {"control": r.control, "treatment": r.treatment, "ratio": r.ratio}


def _row(row: MilabenchRow) -> dict[str, Any]:
    return {
        "benchmark": row.name,
        "n": row.n,
        "fail": row.fail,
        "ngpu": row.ngpu,
        "perf": _number(row.perf),
        "sem": _number(row.sem),
        "std": _number(row.std),
        "peak_memory_mib": row.peak_memory_mib,
        "score": _number(row.score),
        "weight": row.weight,
        "enabled": row.enabled,
        "per_device": {device: _number(mean) for device, mean in row.per_device.items()},
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _number(value: float) -> float | str:
    """JSON has no NaN: what is not finite is written as text."""
    return value if math.isfinite(value) else str(value)
