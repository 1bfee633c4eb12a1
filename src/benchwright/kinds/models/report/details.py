"""The details of a model in `show`: its runtime, build, time to a first result, and output check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchwright.core.numbers.quantities import format_duration
from benchwright.kinds.models.report.facts import checked, fact
from benchwright.kinds.models.report.fields import error_words
from benchwright.kinds.models.report.rows import ModelRow
from benchwright.kinds.models.report.table import SHOWN_DIGITS
from benchwright.report.text.numbers import format_value

_FIRST = (("time.load", "load"), ("time.build", "build"), ("time.first_run", "first run"))


def model_details(row: ModelRow) -> tuple[str, ...]:
    """One paragraph per known detail."""
    said = {
        "model": _model(row),
        "items": _items(row),
        "runtime": _runtime(fact(row.result, "runtime") or {}),
        "build": _build(fact(row.result, "build") or ()),
        "first result": _first_result(row),
        "a call": _in_runtime(row),
        "outputs": _outputs(row),
    }
    return tuple(f"{what}: {text}" for what, text in said.items() if text)


def _model(row: ModelRow) -> str:
    inputs = ", ".join(map(str, row.inputs))
    note = next((line.strip() for line in (row.model.source_note or "").splitlines() if line.strip()), "")
    identity = f"{row.model.class_} {row.model.identity[:SHOWN_DIGITS]}".strip()
    return "; ".join(filter(None, (identity, inputs, note)))


def _items(row: ModelRow) -> str:
    """Items per call with the evidence; nothing if it was not measured."""
    if row.items is None:
        return "not known, so rates count calls" if row.measured else ""
    return f"{row.items:,} in a call ({row.items_from})" if row.items_from else f"{row.items:,} in a call"


def _runtime(told: dict[str, Any]) -> str:
    """`onnxruntime 1.24, CPUExecutionProvider, 2 threads, passive wait, fp32`."""
    threads = told.get("threads")
    wait = told.get("wait_policy")
    details = told.get("details") if isinstance(told.get("details"), dict) else None
    parts = (
        f"{told.get('name', '')} {told.get('version') or ''}".strip(),
        told.get("provider"),
        told.get("device"),
        f"{threads} thread{'s' if threads != 1 else ''}" if threads else None,
        f"{wait} wait" if wait else None,
        told.get("precision"),
        *_arithmetic(details or {}),
    )
    return ", ".join(str(part) for part in parts if part)


def _arithmetic(details: dict[str, Any]) -> Iterator[str]:
    """How it computes on an accelerator, beyond the precision."""
    if details.get("tf32"):
        yield f"TF32 in {details['tf32']}"
    if isinstance(kernels := details.get("attention"), list) and kernels:
        yield f"attention by {' and '.join(map(str, kernels))}"
    if details.get("compile_mode"):
        yield f"mode {details['compile_mode']}"
    if "cudnn_benchmark" in details:
        yield f"cuDNN's benchmark {'on' if details['cudnn_benchmark'] else 'off'}"
    if details.get("deterministic"):
        yield "deterministic"


def _build(steps: Any) -> str:
    """`export 3.1 s, optimise 0.4 s (from the cache)`."""
    words = []
    for step in steps:
        after = " (from the cache)" if step.get("cached") else "" if step.get("ok", True) else " (failed)"
        words.append(f"{step.get('step')} {format_duration(float(step.get('seconds') or 0.0))}{after}")
    return ", ".join(words)


def _first_result(row: ModelRow) -> str:
    whole = row.figure("time.to_first_result")
    if whole is None:
        return ""
    parts = [f"{word} {format_value(s.value, s.unit)}" for name, word in _FIRST if (s := row.figure(name)) is not None]
    script = row.figure("time.script")
    before = "" if script is None else f"; the script before it took {format_value(script.value, script.unit)}"
    return f"{format_value(whole.value, whole.unit)} ({', '.join(parts)}){before}"


def _in_runtime(row: ModelRow) -> str:
    inside, around = row.figure("time.in_runtime"), row.figure("time.around_runtime")
    if inside is None or around is None:
        return ""
    added = format_value(around.value, around.unit)
    return f"{format_value(inside.value, inside.unit)} by the runtime's own clock; calling it from Python adds {added}"


def _outputs(row: ModelRow) -> str:
    check, found = fact(row.result, "check") or {}, checked(row.result)
    figures = check.get("figures") or {}
    words = [
        f"{word} {error_words(figures[name]) if name != 'cosine' else format(figures[name], '.6f')}"
        for name, word in (("relative_l2", "relative L2"), ("max_abs", "max abs"), ("cosine", "cosine"))
        if isinstance(figures.get(name), int | float)
    ]
    if isinstance(figures.get("tolerance"), int | float):
        words.append(f"tolerated {error_words(figures['tolerance'])}")
    against = f" against {figures['reference']}" if figures.get("reference") else ""
    verdict = "" if found is None else "wrong" if not found.ok else "right" if found.claimed else "nothing claimed"
    return "; ".join(
        filter(None, (verdict, ", ".join(words) + against if words else "", str(check.get("detail") or "")))
    )
