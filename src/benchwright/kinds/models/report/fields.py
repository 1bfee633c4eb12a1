"""The figures of a model as columns: what people read in a table, and what machines read in CSV, defined together.

The CSV has the columns first that readers of corpus reports know, then the others, one row for each result.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchwright.core.benchmark import Benchmark
from benchwright.core.efficiency import BYTES
from benchwright.core.model import BUILT_WITH
from benchwright.core.quantities import format_bytes, format_duration, format_prefixed
from benchwright.core.run import Result, Run
from benchwright.core.status import Status
from benchwright.core.summary import Percentile, Summary
from benchwright.kinds.models.build_names import CORPUS, build_name, corpus_of
from benchwright.kinds.models.generations import FIRST_TOKEN, PER_TOKEN, TOKENS, TOKENS_UNIT
from benchwright.kinds.models.report.facts import checked, fact, step_outcome, steps_done
from benchwright.kinds.models.report.rows import ModelRow
from benchwright.kinds.models.report.speedup import speedup_cells
from benchwright.kinds.runtime_names import known_runtime
from benchwright.report.document import NONE, OPTIONAL, Cell, Column, Field, ReportTable, table_of
from benchwright.report.notes import notes_text
from benchwright.report.text.numbers import format_number, format_value, peak_share_words, tenths

# The columns of whole generations in the table of a model.


GENERATION_HINTS = {
    "tokens_per_s": "new tokens of all sequences over the time of the whole generation",
    "first_token_ms": "from the call of generate to the end of the model's first call",
    "per_token_ms": "of each further token of the longest sequence",
}


def generation_cells(row: ModelRow) -> dict[str, object]:
    """By the names of CSV."""
    tokens, first, further = map(row.figure, (TOKENS, FIRST_TOKEN, PER_TOKEN))
    return {
        "tokens_per_s": None if tokens is None else tokens.value,
        "first_token_ms": None if first is None else first.value * 1e3,
        "per_token_ms": None if further is None else further.value * 1e3,
    }


def _tokens(row: ModelRow) -> str:
    figure = row.figure(TOKENS)
    return "" if figure is None else format_number(figure.value)


def _seconds_of(metric: str) -> Callable[[ModelRow], str]:
    def words(row: ModelRow) -> str:
        figure = row.figure(metric)
        return "" if figure is None else format_value(figure.value, figure.unit)

    return words


# Title, priority where room is short, text.
GENERATION_FIELDS: dict[str, tuple[str, int, Callable[[ModelRow], str]]] = {
    "tokens_per_s": (TOKENS_UNIT, 1, _tokens),
    "first_token_ms": ("first token", 2, _seconds_of(FIRST_TOKEN)),
    "per_token_ms": ("per token", 2, _seconds_of(PER_TOKEN)),
}


# How far a model came on its way through ONNX.


def onnx_steps(row: ModelRow) -> dict[str, object]:
    """Only for runtimes that build from ONNX; for others these steps mean something else."""
    runtime, result = known_runtime(row.model.runtime), row.result
    return {
        "onnx_exported": step_outcome(result, "export") if runtime.through_onnx else None,
        "onnx_optimized": step_outcome(result, "optimise") if runtime.through_onnx else None,
        "onnx_converted": step_outcome(result, "convert") if runtime.converts_onnx else None,
    }


# First, and in this order, for those who read corpora by these names; times in milliseconds.
THEIRS = tuple(
    """
model_name author model_class params hash license task groq_chips_used groq_estimated_latency nvidia_latency
x86_latency onnx_exported onnx_optimized onnx_converted
""".split()
)
OURS = (
    *"""
run benchmark script place runtime runtime_version device provider precision tf32 threads inputs items
items_from status reason detail launches latency_ms latency_low_ms latency_high_ms p90_ms p95_ms p99_ms
p99_bound_ms samples items_per_s calls_per_s tokens_per_s first_token_ms per_token_ms streams streams_items_per_s streams_calls_per_s vs_eager
vs_eager_low vs_eager_high vs_eager_basis vs_eager_doubt error_relative_l2 error_max_abs error_cosine outputs outputs_detail reference load_s build_s
first_run_s to_first_result_s memory_bytes device_memory_bytes flops_per_call flop_per_s of_peak limited_by why_no_share
bytes_per_s notes corpus build
""".split(),
    *BUILT_WITH,
    "built_in",
)
NOT_MEASURED = "built, not measured"
Cells = dict[str, object]
TextOf = Callable[[ModelRow], str]
ITEMS, CALLS = "items/s", "calls/s"  # if items are not known, a rate counts calls
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_HINTS = {
    "± 95 %": "95 % confidence interval of the median over launches",
    "vs_eager": "times the throughput of torch-eager in fp32, on the same device and inputs; (p50): of the latency",
    "error_relative_l2": "relative L2 error against the reference: ✓ within the tolerance, ~ nothing is claimed",
    **GENERATION_HINTS,
    "build_s": "steps done in this run; cached: an earlier build was used",
    "memory_bytes": "largest resident memory (RSS) of the measuring process, from before the model was loaded",
    "of_peak": "of arithmetic; (memory): of bandwidth, which limits this model more",
}


def figure_fields(rows: Sequence[ModelRow], values: Callable[[ModelRow], Cells]) -> list[Field[ModelRow]]:
    """For people and machines. `values`: of a row, by the names of CSV."""
    percent = slow_percent(rows)
    counts = {s.labels.get("streams", "") for row in rows if (s := row.figure("throughput.streams"))}
    streams = next(iter(counts)) if len(counts) == 1 else "all"
    latency = "latency p50" if percent is None else f"latency p50 [p{percent:g}]"
    shown: dict[str, tuple[str, int, TextOf]] = {
        "latency_ms": (latency, 0, lambda row: latency_words(row, percent)),
        "± 95 %": ("± 95 %", 1, lambda row: tenths(row.latency.half_width) if row.latency else ""),
        "items_per_s": (ITEMS, 4, _rate_in("rate", ITEMS)),
        "calls_per_s": (CALLS, 4, _rate_in("rate", CALLS)),
        **GENERATION_FIELDS,
        "streams_items_per_s": (f"{streams} streams".strip(), 3, _rate_in("throughput.streams", ITEMS)),
        "streams_calls_per_s": (f"{streams} streams, {CALLS}".strip(), 3, _rate_in("throughput.streams", CALLS)),
        "vs_eager": ("vs eager", 1, lambda row: row.against.words if row.against else ""),
        "error_relative_l2": ("error", 2, _error),
        "build_s": ("build", 6, _build),
        "to_first_result_s": ("first result", OPTIONAL + 1, _first_result),
        "memory_bytes": ("RSS", 7, lambda row: _bytes(row.figure("memory.host"))),
        "device_memory_bytes": ("device memory", 5, lambda row: _bytes(row.figure("memory.device"))),
        "flop_per_s": ("FLOP/s", OPTIONAL, _achieved),
        "of_peak": ("of peak", 8, lambda row: peak_share_words(row.peak_share)),
    }
    return [_field(name, *what, values) for name, what in shown.items()]


def _field(
    name: str, title: str, drop_priority: int, text: TextOf, values: Callable[[ModelRow], Cells]
) -> Field[ModelRow]:
    column = Column(title, name, right=True, drop_priority=drop_priority, hint=_HINTS.get(name))
    return Field(column, lambda row: Cell(text(row), values(row).get(name), _behind(name, row)))


def models_table(rows: Sequence[ModelRow], others: Mapping[int, Result], run: Run) -> ReportTable:
    """For machines: a row for each result in the order of the run; `others`: scripts in which no model was found."""
    cells = {row.number: model_cells(row, run) for row in rows if not shown_elsewhere(row)}
    cells |= {number: _script_cells(result, run) for number, result in others.items()}
    known = (*THEIRS, *OURS)
    added = sorted({name for each in cells.values() for name in each if name not in known}, key=_order)
    fields: list[Field[int]] = [Field(Column(key=key), partial(_value_of, cells, key)) for key in (*known, *added)]
    return table_of(fields, sorted(cells))


def _value_of(cells: Mapping[int, Cells], key: str, number: int) -> Cell:
    return Cell(value=cells[number].get(key))


def _rate_in(metric: str, unit: str) -> TextOf:
    """The figure, of rows that have it in that unit."""

    def words(row: ModelRow) -> str:
        figure = row.figure(metric)
        return format_number(figure.value) if figure is not None and figure.unit == unit else ""

    return words


def _bytes(summary: Summary | None) -> str:
    """`≤` where only a bound is known."""
    if summary is None or not math.isfinite(summary.value):
        return ""
    return ("≤ " if "bound" in summary.labels else "") + format_bytes(summary.value)


def _error(row: ModelRow) -> str:
    """Relative L2 and what the check says: ✓ within the tolerance, ✗ beyond it, ~ nothing is claimed."""
    found = checked(row.result)
    if found is None:
        return ""
    mark = "✗" if not found.ok else "✓" if found.claimed else "~"
    if found.error is None and found.equal is not None:
        return f"{found.equal * 100:.4g} % {mark}"  # whole numbers, such as classes: how many are equal
    return f"{error_words(found.error)} {mark}".strip()


def _build(row: ModelRow) -> str:
    seconds = row.build_s
    return "" if seconds is None else format_duration(seconds) if seconds else "cached"


def _achieved(row: ModelRow) -> str:
    achieved = row.flop_per_s
    return "" if achieved is None else format_prefixed(achieved, "FLOP/s").removesuffix("FLOP/s").strip()


def _first_result(row: ModelRow) -> str:
    first = row.figure("time.to_first_result")
    return "" if first is None else format_duration(first.value)


def error_words(error: float | None) -> str:
    """`2e-6`."""
    if error is None:
        return ""
    return re.sub(r"e([+-])0*(\d)", r"e\1\2", f"{error:.0e}") if error and math.isfinite(error) else f"{error:g}"


def latency_words(row: ModelRow, percent: float | None) -> str:
    """`41.2 ms [44.0]`: the median, and the slow end in the same unit; `[–]` with too few samples for it."""
    latency = row.latency
    if latency is None:
        return ""
    size, unit = next((s for s in _SCALES if abs(latency.value) >= s[0]), _SCALES[-1])
    middle = latency.value / size
    decimals = max(0, 3 - math.floor(math.log10(abs(middle)))) if middle and math.isfinite(middle) else 0
    words = f"{middle:,.{decimals}f} {unit}"
    if percent is None:
        return words
    found = _bounded(latency).get(percent)
    return f"{words} [{NONE if found is None else format(found.value / size, f',.{decimals}f')}]"


def slow_percent(rows: Sequence[ModelRow]) -> float | None:
    """The outermost percentile of latency that at least half of the rows have enough samples for."""
    known = [percent for row in rows if row.latency is not None for percent in _bounded(row.latency)]
    return max((percent for percent in known if 2 * known.count(percent) >= len(rows)), default=None)


def _bounded(latency: Summary) -> dict[float, Percentile]:
    return {p.percent: p for p in latency.percentiles if p.bound is not None}


def _behind(name: str, row: ModelRow) -> str | None:
    """The details of a cell: the check behind an error, the steps of a build."""
    if name == "error_relative_l2" and (found := checked(row.result)) is not None:
        against = f", against {found.reference}" if found.reference else ""
        return f"{found.detail}{against}" or None
    if name == "vs_eager":
        return str(row.against.remark) if row.against and row.against.doubt else None
    if name in ("items_per_s", "calls_per_s"):
        if row.items is None:
            return "how many items a call has is not known"
        return f"{row.items:,} items in a call: {row.items_from}" if row.items_from else None
    if name == "build_s":
        steps = fact(row.result, "build") or ()
        return ", ".join(f"{s.get('step')} {format_value(float(s.get('seconds') or 0.0), 's')}" for s in steps) or None
    return None


def _script_cells(result: Result, run: Run) -> Cells:
    """How a script without a model ended."""
    benchmark = result.benchmark
    words = benchmark.workload.words[1:]
    path = next((word for word in words if word.endswith((".py", ".ipynb"))), benchmark.source)
    cells = _of_script(path, benchmark.labels) | _ending(result) | _added(benchmark)
    corpus = benchmark.labels.get(CORPUS) or os.path.basename(os.path.dirname(path))
    cells |= {"run": run.id, "benchmark": benchmark.name, "script": path, "corpus": corpus or None}
    cells["notes"] = notes_text(run, result)
    if result.status is Status.OK:
        cells["detail"] = "no model was found in it"
    return {name: "" if value is None else value for name, value in cells.items()}


def shown_elsewhere(row: ModelRow) -> bool:
    """A successful profile has no figure of the whole model."""
    return row.model.profile and row.result.status is Status.OK and not row.measured


def _order(name: str) -> tuple[int, str]:
    return ("parameter.", "label.", "build.").index(name.partition(".")[0] + "."), name


def model_cells(row: ModelRow, run: Run) -> Cells:
    result = row.result
    cells: Cells = _theirs(row, run) | _about(row, run) | _figures(row) | _outputs(row)
    cells |= _added(result.benchmark) | {"notes": notes_text(run, result)}
    cells |= {f"build.{step}_s": seconds for step, seconds in steps_done(row.builders).items()}
    return {name: "" if value is None else value for name, value in cells.items()}


def _added(benchmark: Benchmark) -> Cells:
    cells: Cells = {f"parameter.{name}": value for name, value in benchmark.parameters.items()}
    return cells | {f"label.{name}": value for name, value in benchmark.labels.items()}


def _of_script(path: str, labels: Mapping[str, str], otherwise: str = "") -> Cells:
    name = labels.get("name") or os.path.splitext(os.path.basename(path))[0] or otherwise
    return {"model_name": name, **{key: labels.get(key) for key in ("author", "license", "task")}}


def _ending(result: Result) -> Cells:
    reason = result.reason.value if result.reason else None
    return {"status": result.status.value, "reason": reason, "detail": result.detail}


def _theirs(row: ModelRow, run: Run) -> Cells:
    model, labels = row.model, row.result.benchmark.labels
    path = model.script or model.file or ""
    latency = _milliseconds(row.latency) if row.result.status is Status.OK else None
    return {
        **_of_script(path, labels, (model.zoo or "").partition(":")[2]),
        "model_class": model.class_,
        "params": row.parameter_count or None,
        "hash": model.identity,
        "nvidia_latency": latency if _on_nvidia(row) else None,
        "x86_latency": latency if model.device == "cpu" and run.machine.architecture in ("x86_64", "AMD64") else None,
        **onnx_steps(row),
    }


def _on_nvidia(row: ModelRow) -> bool:
    provider = str((fact(row.result, "runtime") or {}).get("provider", ""))
    return row.model.device.startswith("cuda") and "ROCM" not in provider.upper() and "HIP" not in provider.upper()


def _about(row: ModelRow, run: Run) -> Cells:
    model, result = row.model, row.result
    runtime: dict[str, object] = fact(result, "runtime") or {}
    tried = result.benchmark.withheld is None
    return {
        "run": run.id,
        "benchmark": result.benchmark.name,
        "script": model.script or model.file or model.zoo,
        "corpus": corpus_of(model, result.benchmark.labels) or None,
        "build": build_name(model, result.benchmark.labels),
        **{name: getattr(model, name) for name in BUILT_WITH},
        "built_in": (fact(result, "built") or {}).get("folder"),
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
        **({"detail": NOT_MEASURED} if model.stops_after and result.status is Status.OK else {}),
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
        **generation_cells(row),
        "streams": streams.labels.get("streams") if streams is not None else None,
        "streams_items_per_s": _in(streams, ITEMS),
        "streams_calls_per_s": _per_call(streams, row),
        **speedup_cells(row.against),
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
        "of_peak": row.peak_share and row.peak_share.value,
        "limited_by": row.peak_share and row.peak_share.limit,
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
