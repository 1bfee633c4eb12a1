"""Runs as event files of TensorBoard: a folder for each launch, every sample a scalar, notes as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.measurement import Measurement
from benchwright.core.redacted import run_without_secrets
from benchwright.core.run import Launch, Result, Run
from benchwright.report.notes import notes_text

_UNSAFE = re.compile(r"[^\w.+@=,%-]+")
_WARMUP = " (warm-up)"


class TensorboardExporter:
    """A folder of event files."""

    suffix = None

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        return export_tensorboard(runs, Path(target))


def export_tensorboard(runs: Sequence[Run], path: Path) -> tuple[str, ...]:
    """Writes `path`/<run>/<job>/events…; a sample's step is its number in its phase. Returns what was left out.

    Samples that are not finite are left out, since a chart has no place for them.
    """
    writer_of, event_of, text_of = _package()
    if path.exists() and not path.is_dir():
        raise InvalidInput("this is not a folder", where=str(path), remedy="give the name of a folder")
    left = 0
    for run in map(run_without_secrets, runs):
        started = datetime.fromisoformat(run.started).timestamp() if run.started else 0.0
        for result in run.results:
            for launch in result.launches:
                writer = writer_of(str(path / _safe(run.id) / _safe(launch.job)))
                writer.add_event(event_of(started, 0, text_of("about", _about(run, result, launch))))
                for m in launch.measurements:
                    left += _add(writer, event_of, m, started, warmup=launch.warmup)
                writer.close()
    return (f"{left} samples are not finite, and not in the event files",) if left else ()


def _add(writer: Any, event_of: Any, measurement: Measurement, started: float, *, warmup: bool) -> int:
    """How many samples could not be written."""
    left = 0
    name = " ".join([measurement.metric, *(f"{key}:{value}" for key, value in measurement.labels.items())])
    unit = f" [{measurement.unit}]" if measurement.unit else ""
    for samples, phase in (
        (measurement.warmup_samples, _WARMUP),
        (measurement.samples, _WARMUP if warmup else ""),
    ):
        for step, value in enumerate(samples):
            if math.isfinite(value):
                writer.add_event(event_of(started, step, {"tag": f"{name}{unit}{phase}", "simple_value": value}))
            else:
                left += 1
    return left


def _about(run: Run, result: Result, launch: Launch) -> str:
    """Context of the numbers, as Markdown."""
    ended = " ".join(filter(None, (launch.status.value, launch.reason and launch.reason.words, launch.detail)))
    rows = {
        "benchmark": result.benchmark.name,
        "run": run.id,
        "ended": ended,
        "machine": run.machine.cpu,
        "notes": notes_text(run, result),
    }
    return "\n".join(f"- **{key}**: {value}" for key, value in rows.items() if value)


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _package() -> tuple[Any, Any, Any]:
    """TensorBoard's writer, and functions that make an event and a summary of text for it."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.plugins.text.metadata import create_summary_metadata
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
        from tensorboard.util.tensor_util import make_tensor_proto
    except ImportError as error:
        raise BenchwrightError(
            "writing event files needs tensorboard, which is not installed; pip install tensorboard"
        ) from error

    def event(wall_time: float, step: int, value: dict[str, Any]) -> Any:
        return Event(wall_time=wall_time, step=step, summary=Summary(value=[Summary.Value(**value)]))

    def text(tag: str, words: str) -> dict[str, Any]:
        tensor = make_tensor_proto(words.encode("utf-8", "replace"))
        return {"tag": tag, "tensor": tensor, "metadata": create_summary_metadata(tag, words[:80])}

    return EventFileWriter, event, text
