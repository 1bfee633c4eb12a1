"""Runs in milabench's format: a folder for each run, with a `.data` file for each process, one JSON object per line.

Every line is an object of `event`, `data` and `pipe`. Samples are written in order, warm-up first and unmarked, since
milabench does not mark it; what it has no event for is left out.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement, in_order
from benchwright.core.run import Launch, Result, Run
from benchwright.core.secrets import redact_body, redact_text, redact_words
from benchwright.core.status import Reason, Status
from benchwright.core.whole_file import unwritable
from benchwright.kinds.registry import kind_of
from benchwright.report.export.exported_file import exported_file
from benchwright.report.text.commands import words_of
from benchwright.runs.read_run import words_by_job

_MIB = 2**20
_GPU = {"gpu.load": ("load", 0.01), "gpu.temperature": ("temperature", 1.0), "gpu.power": ("power", 1.0)}
_PHASES = ("init", "parse_args", "load_script", "run_script")
_TAG_PART = re.compile(r"[RD]?\d+")
_UNSAFE = re.compile(r"[^\w.+@=-]")


class MilabenchExporter:
    """A folder of .data files for each run."""

    suffix = None

    def export(self, runs: Sequence[Run], target: str) -> Sequence[str]:
        export_milabench(runs, Path(target))
        return ()


def export_milabench(runs: Sequence[Run], path: Path) -> None:
    """Writes `path`/<run>/<job>.data; warm-up launches are left out."""
    if path.exists() and not path.is_dir():
        raise InvalidInput("this is not a folder", where=str(path), remedy="give the name of a folder")
    for run in runs:
        folder = path / _safe(run.id)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from error
        offset_s, words = 0.0, words_by_job(run, kind_of)
        for result in run.results:
            for launch in result.launches:
                if not launch.warmup:
                    _write(folder, run, result, launch, offset_s, words)
            offset_s += sum(launch.duration_s or 0.0 for launch in result.launches)


def _write(
    folder: Path, run: Run, result: Result, launch: Launch, offset_s: float, words: Mapping[str, Sequence[str]]
) -> None:
    command = redact_words(words.get(launch.job) or words_of(result.benchmark))
    with (
        exported_file(folder / f"{_safe(launch.job)}.data") as aside,
        open(aside, "w", encoding="utf-8", errors="replace") as file,
    ):
        for event, data, pipe in _lines(run, result, launch, offset_s, command):
            file.write(json.dumps({"event": event, "data": data, "pipe": pipe}) + "\n")


def _lines(
    run: Run, result: Result, launch: Launch, offset_s: float, command: Sequence[str]
) -> Iterator[tuple[str, object, str | None]]:
    began = _began(run, launch, offset_s)
    yield "config", _config(run, result, launch), None
    yield "meta", _meta(run), "data"
    yield "start", {"command": command, "time": began}, None
    for phase in _PHASES:
        yield "phase", {"name": phase}, "data"
    for data in _data(run, launch):
        yield "data", data, "data"
    if launch.measured_enough or (launch.status is Status.OK and launch.exit_code != 0):
        yield "stop", None, "data"
    if launch.status is Status.FAILED and launch.exit_code != 0:
        reason = launch.reason.value if launch.reason else "failed"
        yield "error", {"type": reason, "message": redact_text(launch.detail or "")}, "data"
    yield "phase", {"name": "finalize"}, "data"
    if launch.reason is not Reason.AGENT_LOST:
        code: int | str = "ERROR" if launch.exit_code is None else launch.exit_code
        yield "end", {"command": command, "time": began + (launch.duration_s or 0.0), "return_code": code}, None


def _config(run: Run, result: Result, launch: Launch) -> dict[str, object]:
    benchmark = result.benchmark
    config: dict[str, object] = benchmark.entry
    config |= {
        "name": benchmark.name,
        "group": config.get("group") or benchmark.labels.get("group") or benchmark.name,
        "tag": _tag(benchmark.name, launch.job),
        "weight": benchmark.weight,
        "enabled": benchmark.enabled,
        "tags": list(benchmark.tags),
        "run_name": run.id,
        "devices": [str(device) for device in launch.devices],
    }
    if benchmark.placement.per_device and len(launch.devices) == 1:
        config |= {"device": launch.devices[0], "plan": config.get("plan") or {"method": "per_gpu"}}
    else:
        config.setdefault("plan", {"method": "njobs", "n": benchmark.placement.jobs})
    if benchmark.timeout_s is not None:
        config["max_duration"] = benchmark.timeout_s
    plain: dict[str, object] = redact_body(msgspec.to_builtins(config))
    return plain


def _tag(name: str, job: str) -> list[str]:
    """The parts of a job's name as milabench lists them: the benchmark's name, which may contain dots, then the rest."""
    if job.startswith(f"{name}."):
        return [name, *job[len(name) + 1 :].split(".")]
    parts = job.split(".")
    tail = list(itertools.takewhile(_TAG_PART.fullmatch, reversed(parts)))
    return [name, *reversed(tail)]


def _meta(run: Run) -> dict[str, object]:
    machine = run.machine
    gpus = {
        str(gpu.index): {"product": gpu.name, "memory": {"used": 0, "total": (gpu.memory_bytes or 0) / _MIB}}
        for gpu in machine.accelerators
    }
    drivers = {gpu.driver for gpu in machine.accelerators if gpu.driver}
    return {
        "cpu": {"count": machine.cores_total, "brand": machine.cpu},
        "os": {
            "sysname": machine.system,
            "nodename": machine.hostname,
            "release": machine.kernel,
            "machine": machine.architecture,
        },
        "accelerators": {
            "arch": run.labels.get("arch") or ("cuda" if gpus else "cpu"),
            "gpus": gpus,
            "system": {"DRIVER_VERSION": min(drivers)} if drivers else {},
        },
        "python": {"version": machine.python},
        "date": run.started,
    }


def _data(run: Run, launch: Launch) -> Iterator[dict[str, object]]:
    """Rates, losses and the rest in turn, as a program would report them."""
    series = [_said(m) for m in _chosen(launch)]
    series.append(_gpu_data(launch, run.machine))
    for together in itertools.zip_longest(*series):
        yield from (data for data in together if data is not None)


def _chosen(launch: Launch) -> Iterator[Measurement]:
    """Of several ranks, their joint measurements, and the first rank's where there is no joint one."""
    ranks: dict[str, list[str | None]] = {}
    for m in launch.measurements:
        ranks.setdefault(m.metric, []).append(m.labels.get("rank"))
    first = {(metric, None if None in reported else min(reported, key=str)) for metric, reported in ranks.items()}
    seen: set[str] = set()
    for m in launch.measurements:
        reported = m.source in ("give", "log") or m.metric == "rate" or m.metric.endswith(".rate")
        if reported and (m.metric, m.labels.get("rank")) in first and m.metric not in seen:
            seen.add(m.metric)
            yield m


def _said(m: Measurement) -> list[dict[str, object]]:
    values = in_order(m)
    prefix, _, key = m.metric.rpartition(".")
    if key == "rate":
        return [{"task": prefix or "train", "rate": value, "units": m.unit or "items/s"} for value in values]
    if key == "loss":
        return [{"task": prefix or "train", "loss": value} for value in values]
    if m.metric == "gpu.memory_peak":
        return [{"memory_peak": value / _MIB, "units": "MiB"} for value in values]
    return [{"task": "train", m.metric: value} for value in values]


def _gpu_data(launch: Launch, machine: Machine) -> list[dict[str, object]]:
    known = (launch.facts.get("reported") or {}).get("gpu_memory_bytes") or {}
    totals = {str(gpu.index): gpu.memory_bytes for gpu in machine.accelerators} | known
    looks: list[dict[str, dict[str, object]]] = []

    def at(index: int, device: str) -> dict[str, object]:
        while len(looks) <= index:
            looks.append({})
        return looks[index].setdefault(device, {})

    for m in launch.measurements:
        device = m.labels.get("device", "0")
        values = (*m.warmup_samples, *m.samples)
        for index, value in enumerate(values if m.source == "sampler" else ()):
            if m.metric == "gpu.memory":
                total = totals.get(device) or max(values)
                at(index, device)["memory"] = [value / _MIB, total / _MIB]
            elif m.metric in _GPU:
                key, scale = _GPU[m.metric]
                at(index, device)[key] = value * scale
    return [{"task": "main", "gpudata": look} for look in looks]


def _began(run: Run, launch: Launch, offset_s: float) -> float:
    """When it started, in seconds since 1970; approximate if only the run's start is known."""
    wall = (launch.facts.get("reported") or {}).get("wall") or [None]
    if isinstance(wall[0], int | float):
        return float(wall[0])
    try:
        return datetime.fromisoformat(run.started).timestamp() + offset_s
    except ValueError:
        return offset_s


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name)[:200] or "_"
