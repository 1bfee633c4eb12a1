"""milabench's run folders, `<name>.<time>/<tag>.data`: every file is a process, so every file is a launch.

All rates are kept: milabench does not mark warm-up. `facts["milabench"]` of a launch has what its own report needs
besides.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from pathlib import Path
from typing import Any

from benchwright.compat.milabench.data_file import JobFile, looks_like_milabench, read_job_file
from benchwright.core.benchmark import Benchmark, Command, Placement
from benchwright.core.errors import InvalidInput
from benchwright.core.launches import only_whole, worst_overlap
from benchwright.core.machine import UNKNOWN, Accelerator, Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.core.note import Note
from benchwright.core.reported import TRAIN, UNNAMED, is_number
from benchwright.core.run import Launch, Result, Run, culprit
from benchwright.core.status import Reason, Status
from benchwright.runs.assembly import status_of
from benchwright.runs.imported_run import UNKNOWN_WORKLOAD, as_count, instant, make_machine, measurement, moment

TOOL = "milabench"
_NO_RUNS = ("install.", "prepare.")  # folders of its other phases, which measure nothing
_GPU = {
    "memory_bytes": ("gpu.memory", "B", Direction.LOWER, "max"),
    "load_percent": ("gpu.load", "%", Direction.NEITHER, "average"),
    "power_w": ("gpu.power", "W", Direction.LOWER, "average"),
    "temperature_c": ("gpu.temperature", "°C", Direction.NEITHER, "max"),
}


class MilabenchImporter:
    """Reads a file, or a folder of files as one run."""

    name = TOOL

    def recognises(self, path: Path) -> bool:
        if not path.is_dir():
            return looks_like_milabench(path)
        try:
            return any(map(looks_like_milabench, _files(path)))
        except OSError:
            return False

    def read(self, path: Path) -> list[Run]:
        if not path.is_dir():
            job = read_job_file(path)
            return [_run(path, [job], job.digest, [])]
        if path.name.startswith(_NO_RUNS):
            return []
        jobs: list[JobFile] = []
        trouble = []
        for file in _files(path):
            try:
                jobs.append(read_job_file(file))
            except InvalidInput as error:
                trouble.append(f"{file.name} was left out: {error.what}")
        if not jobs:
            raise InvalidInput(
                "cannot be read: it has no .data file and no replay of milabench",
                where=str(path),
                remedy="give a folder such as runs/<name>.<time>",
            )
        digest = hashlib.sha256("".join(f"{job.stem}\0{job.digest}\n" for job in jobs).encode())
        return [_run(path, jobs, digest.hexdigest(), trouble)]


def _files(folder: Path) -> list[Path]:
    """Its `.data` files; where there are none, the replays among its `.txt` files, which have the same lines."""
    return sorted(folder.glob("*.data")) or [
        file for file in sorted(folder.glob("*.txt")) if looks_like_milabench(file)
    ]


def _run(path: Path, jobs: list[JobFile], digest: str, trouble: list[str]) -> Run:
    groups: dict[str, list[JobFile]] = {}
    for job in sorted(jobs, key=lambda job: (job.time(job.start) or math.inf, job.stem)):
        groups.setdefault(job.name, []).append(job)
    results: list[Result] = []
    position = 0
    for name, same in groups.items():
        ran = [job for job in same if not job.skipped]
        results.append(_result(name, ran, position) if ran else _skipped(name, same))
        position += len({job.launch for job in ran})
    meta = next((job.meta for job in jobs if job.meta), {})
    config = next((job.config for job in jobs if job.config), {})
    began = [time for job in jobs if (time := job.time(job.start)) is not None]
    ended = [time for job in jobs if (time := job.time(job.end)) is not None]
    started = moment(min(began)) if began else instant(str(meta.get("date", "")))
    remarks = list(trouble)
    if started is None:
        started = moment(max(job.changed for job in jobs)) or UNKNOWN
        remarks.append("milabench did not record when it measured: the time is that of the files")
    machine = _machine(meta)
    if not machine.known:
        remarks.append("milabench did not record which machine it measured on")
    return Run(
        id=f"import.{TOOL}.{digest[:16]}",
        name=path.name.removesuffix(".data").removesuffix(".txt"),
        started=started,
        ended=moment(max(ended)) if ended else None,
        folder=os.path.abspath(path),
        status=status_of([result.status for result in results]),
        machine=machine,
        results=tuple(results),
        labels=_labels(meta, config) | {"imported_from": TOOL},
        notes=tuple(Note(text=text) for text in remarks),
    )


def _result(name: str, jobs: list[JobFile], position: int) -> Result:
    config = next((job.config for job in jobs if job.config), {})
    numbers = {launch: n for n, launch in enumerate(dict.fromkeys(job.launch for job in jobs))}
    seats = _seats(jobs)
    most = len(set(seats.values()))
    launches = only_whole(
        [_launch(job, position + numbers[job.launch], seat=seats[job.path] if most > 1 else None) for job in jobs]
    )
    bad = culprit(launches) or next((launch for launch in launches if launch.status is not Status.OK), None)
    benchmark = Benchmark(
        name=name,
        workload=_workload(jobs[0]),
        placement=Placement(jobs=most, per_device=any(job.device is not None for job in jobs)),
        source=TOOL,
        tags=_texts(config.get("tags")),
        weight=float(config["weight"]) if _is_weight(config.get("weight")) else 1.0,
        enabled=bool(config.get("enabled", True)),
        labels={key: str(config[key]) for key in ("group",) if isinstance(config.get(key), str)},
        timeout_s=float(config["max_duration"]) if _is_weight(config.get("max_duration")) else None,
    )
    return Result(
        benchmark=benchmark,
        status=bad.status if bad else Status.OK,
        reason=bad.reason if bad else None,
        detail=bad.detail if bad else None,
        launches=launches,
        overlap=worst_overlap(launches),
    )


def _skipped(name: str, files: list[JobFile]) -> Result:
    """A benchmark of which there is only milabench's word that the machine lacks what it requires."""
    unmet = dict.fromkeys(condition for file in files for condition in file.unmet)
    return Result(
        benchmark=Benchmark(name=name, workload=UNKNOWN_WORKLOAD, source=TOOL),
        status=Status.SKIPPED,
        reason=Reason.LACKS_CAPABILITY,
        detail=f"needs {' and '.join(unmet)}, which did not hold there",
    )


def _seats(jobs: list[JobFile]) -> dict[str, int]:
    """The number of each file's process within its launch: the same in every launch."""
    ordered = sorted(jobs, key=lambda job: _in_order(job.stem))
    places = list(dict.fromkeys(job.place for job in ordered))
    if len({(job.launch, job.place) for job in jobs}) == len(jobs):
        return {job.path: places.index(job.place) for job in jobs}
    together: dict[int | None, list[str]] = {}  # files with the same tag: numbered by their order
    for job in ordered:
        together.setdefault(job.launch, []).append(job.path)
    return {path: number for paths in together.values() for number, path in enumerate(paths)}


def _launch(job: JobFile, position: int, seat: int | None) -> Launch:
    """`seat`: its number among the processes that ran together."""
    status, reason, detail = _verdict(job)
    began, ended = job.time(job.start), job.time(job.end)
    notes = [note for note in job.said.notes() if "could not be read" not in note.text]
    if job.broken:
        notes.append(
            Note(text="some lines of the file could not be read and were skipped", evidence=f"{job.broken} lines")
        )
    config = job.config or {}
    facts: dict[str, object] = {
        "milabench": {
            "success": job.success,
            "counted": job.counted,
            "device": job.device,
            "weight": float(config["weight"]) if _is_weight(config.get("weight")) else None,
            "enabled": bool(config.get("enabled", True)),
            "early_stop": job.said.stopped,
            "return_code": job.return_code,
            "ngpu": job.ngpu,
            "energy": job.energy,
        },
        "reported": {
            "dialect": job.said.dialect,
            "early_stop": job.said.stopped,
            "gpu_memory_bytes": job.said.gpu_memory_bytes,
            "wall": [began, ended],
        },
    }
    if job.has_no_log:
        facts["reports"] = False
    times = [
        seen.t for seen in job.said.rates.get(TRAIN, []) if seen.t > 10**15
    ]  # smaller ones are not wall-clock times
    if len(times) > 1:
        facts["measured_ns"] = (times[0], times[-1])
    return Launch(
        job=job.stem,
        status=status,
        reason=reason,
        detail=detail,
        launch=job.launch,
        position=position,
        devices=job.devices,
        duration_s=ended - began if began is not None and ended is not None and ended >= began else None,
        exit_code=job.return_code if isinstance(job.return_code, int) else None,
        measurements=tuple(_measurements(job, {} if seat is None else {"job": str(seat)})),
        notes=tuple(dict.fromkeys(notes)),
        facts=facts,
    )


def _verdict(job: JobFile) -> tuple[Status, Reason | None, str | None]:
    """By our own rules: what came after an early stop counts too, except for how milabench ended the process."""
    code = job.return_code
    error = f": {job.said.errors[0]}" if job.said.errors else ""
    if job.start is None and error:
        return Status.FAILED, Reason.CRASHED, f"never started{error}"
    if job.end is None:
        return Status.FAILED, Reason.AGENT_LOST, "the file has no end: milabench or the machine died"
    if not job.said.stopped and code != 0:
        if isinstance(code, int) and code < 0:
            return Status.FAILED, Reason.SIGNALLED, f"ended by signal {-code}{error}"
        return Status.FAILED, Reason.CRASHED, f"exit code {code}{error}"
    if job.has_nan_loss:
        return Status.FAILED, Reason.INVALID, "a loss is not a finite number"
    if not any(job.said.rates.values()) and not job.has_no_log:
        return Status.FAILED, Reason.NO_DATA, f"the file has no rate{error}"
    return Status.OK, None, None


def _measurements(job: JobFile, seat: dict[str, str]) -> list[Measurement]:
    said = job.said
    found = []
    for task, seen in said.rates.items():
        rates = [s.value for s in seen]
        metric = "rate" if task == TRAIN else f"{task}.rate"
        labels = seat | {"loop": task}
        found.append(measurement(metric, said.units.get(task), Direction.HIGHER, rates, source="loop", labels=labels))
    given = {(task, "loss"): losses for task, losses in said.losses.items()} | said.values
    for (task, key), values in given.items():
        metric = key if task in (TRAIN, UNNAMED) else f"{task}.{key}"
        better = guess_direction(key)
        found.append(measurement(metric, None, better, values, source="give", aggregate="last", labels=seat))
    series: dict[tuple[str, str], list[float]] = {}
    for gpu in said.gpus:
        for name, value in gpu.values.items():
            series.setdefault((name, gpu.device), []).append(value)
    for (name, device), values in series.items():
        metric, unit, direction, aggregate = _GPU[name]
        about: dict[str, Any] = {"aggregate": aggregate, "labels": seat | {"device": device}}
        found.append(measurement(metric, unit, direction, values, source="sampler", **about))
    if said.memory_peaks:
        peaks = said.memory_peaks
        found.append(
            measurement("gpu.memory_peak", "B", Direction.LOWER, peaks, source="give", aggregate="max", labels=seat)
        )
    return found


def _workload(job: JobFile) -> Command:
    words = _texts((job.start or {}).get("command"))
    folder = (job.config or {}).get("definition")
    return (
        Command(argv=words, cwd=folder if isinstance(folder, str) and folder else UNKNOWN)
        if words
        else UNKNOWN_WORKLOAD
    )


def _is_weight(value: object) -> bool:
    return is_number(value) and math.isfinite(value) and value >= 0


def _in_order(stem: str) -> list[tuple[int, str]]:
    """So that D10 comes after D9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d{1,9})", stem)]


def _texts(value: object) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if isinstance(value, list) else ()


def _machine(meta: dict[str, object]) -> Machine:
    """The machine in milabench's `meta` event; what it does not say is unknown."""
    system, cpu = _dict(meta.get("os")), _dict(meta.get("cpu"))
    accelerators = _dict(meta.get("accelerators"))
    gpus = _dict(accelerators.get("gpus")) or _dict(meta.get("gpus"))
    driver = _dict(accelerators.get("system")).get("DRIVER_VERSION")
    found = []
    for index, gpu in enumerate(_dict(about) for about in gpus.values()):
        memory = _dict(gpu.get("memory")).get("total")
        found.append(
            Accelerator(
                index=index,
                name=str(gpu.get("product", UNKNOWN)),
                memory_bytes=as_count(memory * 2**20) or None if is_number(memory) else None,
                driver=str(driver) if driver else None,
            )
        )
    count = cpu.get("count")
    cores = as_count(count) if is_number(count) else 0
    words = {"hostname": "nodename", "system": "sysname", "kernel": "release", "architecture": "machine"}
    return make_machine(
        **{ours: _text(system.get(theirs)) for ours, theirs in words.items()},
        cpu=_text(cpu.get("brand")),
        cores=cores,
        cores_total=cores,
        python=_text(_dict(meta.get("python")).get("version")),
        accelerators=tuple(found),
    )


def _labels(meta: dict[str, object], config: dict[str, object]) -> dict[str, str]:
    """The run's labels: the version of milabench, and its name for the run."""
    about = _dict(meta.get("milabench"))
    known = {
        "revision": about.get("commit"),
        "milabench": about.get("tag"),
        "run_name": config.get("run_name"),
        "arch": config.get("arch") or _dict(meta.get("accelerators")).get("arch"),
        "torch": _dict(meta.get("pytorch")).get("torch"),
    }
    return {key: value for key, value in known.items() if isinstance(value, str) and value}


def _dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
