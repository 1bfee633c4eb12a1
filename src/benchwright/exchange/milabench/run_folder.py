"""milabench's run folders, `<name>.<time>/<tag>.data`: every file is a process, so every file is a launch.

Rates are kept all: milabench marks no warm-up, and nobody can know it now. `facts["milabench"]` of a launch holds what
its own report needs beyond that.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from pathlib import Path

from benchwright.core.benchmark import Benchmark, Command, Placement
from benchwright.core.errors import InvalidInput
from benchwright.core.events.voir import TRAIN, UNNAMED, is_number
from benchwright.core.machine import UNKNOWN
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, guess_direction
from benchwright.core.note import Note
from benchwright.core.results.overlap import worst_overlap
from benchwright.core.results.whole_launches import only_whole
from benchwright.core.run import Launch, Result, Run, culprit
from benchwright.core.status import Reason, Status
from benchwright.exchange.imported_run import UNKNOWN_WORKLOAD, instant, moment
from benchwright.exchange.milabench.data_file import JobFile, looks_like_milabench, read_job_file
from benchwright.exchange.milabench.meta import labels_of, machine_of

TOOL = "milabench"
_NO_RUNS = ("install.", "prepare.")  # folders of its other phases: nothing is measured there
_GPU = {
    "memory_bytes": ("gpu.memory", "B", Direction.LOWER, "max"),
    "load_percent": ("gpu.load", "%", Direction.NEITHER, "average"),
    "power_w": ("gpu.power", "W", Direction.LOWER, "average"),
    "temperature_c": ("gpu.temperature", "°C", Direction.NEITHER, "max"),
}


class MilabenchImporter:
    """Reads a file, or a folder of them as one run."""

    name = TOOL

    def recognises(self, path: Path) -> bool:
        if not path.is_dir():
            return looks_like_milabench(path)
        try:
            return any(looks_like_milabench(file) for file in sorted(path.glob("*.data")))
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
        for file in sorted(path.glob("*.data")):
            try:
                jobs.append(read_job_file(file))
            except InvalidInput as error:
                trouble.append(f"{file.name} was left out: {error.what}")
        if not jobs:
            raise InvalidInput(
                "cannot be read: it holds no .data file of milabench",
                where=str(path),
                remedy="give a folder such as runs/<name>.<time>",
            )
        digest = hashlib.sha256("".join(f"{job.stem}\0{job.digest}\n" for job in jobs).encode())
        return [_run(path, jobs, digest.hexdigest(), trouble)]


def _run(path: Path, jobs: list[JobFile], digest: str, trouble: list[str]) -> Run:
    groups: dict[str, list[JobFile]] = {}
    for job in sorted(jobs, key=lambda job: (job.time(job.start) or math.inf, job.stem)):
        groups.setdefault(job.name, []).append(job)
    results: list[Result] = []
    position = 0
    for name, same in groups.items():
        results.append(_result(name, same, position))
        position += len({job.repeat for job in same})
    meta = next((job.meta for job in jobs if job.meta), {})
    config = next((job.config for job in jobs if job.config), {})
    began = [time for job in jobs if (time := job.time(job.start)) is not None]
    ended = [time for job in jobs if (time := job.time(job.end)) is not None]
    started = moment(min(began)) if began else instant(str(meta.get("date", "")))
    remarks = list(trouble)
    if started is None:
        started = moment(max(job.changed for job in jobs)) or UNKNOWN
        remarks.append("milabench did not write down when it measured: the time is that of the files")
    machine = machine_of(meta)
    if not machine.known:
        remarks.append("milabench did not write down which machine it measured on")
    statuses = {result.status for result in results}
    return Run(
        id=f"import.{TOOL}.{digest[:16]}",
        name=path.name.removesuffix(".data"),
        started=started,
        ended=moment(max(ended)) if ended else None,
        folder=os.path.abspath(path),
        status=Status.FAILED if Status.FAILED in statuses else Status.OK,
        machine=machine,
        results=tuple(results),
        labels=labels_of(meta, config) | {"imported_from": TOOL},
        notes=tuple(Note(text=text) for text in remarks),
    )


def _result(name: str, jobs: list[JobFile], position: int) -> Result:
    config = next((job.config for job in jobs if job.config), {})
    repeats = {repeat: n for n, repeat in enumerate(dict.fromkeys(job.repeat for job in jobs))}
    seats = _seats(jobs)
    most = len(set(seats.values()))
    launches = only_whole(
        [_launch(job, position + repeats[job.repeat], seat=seats[job.path] if most > 1 else None) for job in jobs]
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


def _seats(jobs: list[JobFile]) -> dict[str, int]:
    """For each file which of the processes that ran together it is of: the same number in every repetition."""
    ordered = sorted(jobs, key=lambda job: _in_order(job.stem))
    places = list(dict.fromkeys(job.place for job in ordered))
    if len({(job.repeat, job.place) for job in jobs}) == len(jobs):
        return {job.path: places.index(job.place) for job in jobs}
    together: dict[int | None, list[str]] = {}  # files that say they are the same: told apart by their order
    for job in ordered:
        together.setdefault(job.repeat, []).append(job.path)
    return {path: number for paths in together.values() for number, path in enumerate(paths)}


def _launch(job: JobFile, position: int, seat: int | None) -> Launch:
    """`seat`: which of the processes that ran together it was."""
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
        },
        "voir": {
            "early_stop": job.said.stopped,
            "gpu_memory_bytes": job.said.gpu_memory_bytes,
            "wall": [began, ended],
        },
    }
    times = [seen.t for seen in job.said.rates.get(TRAIN, []) if seen.t > 10**15]  # smaller ones are no time of day
    if len(times) > 1:
        facts["measured_ns"] = (times[0], times[-1])
    return Launch(
        job=job.stem,
        status=status,
        reason=reason,
        detail=detail,
        repeat=job.repeat,
        position=position,
        devices=job.devices,
        duration_s=ended - began if began is not None and ended is not None and ended >= began else None,
        exit_code=job.return_code if isinstance(job.return_code, int) else None,
        measurements=tuple(_measurements(job, {} if seat is None else {"job": str(seat)})),
        notes=tuple(dict.fromkeys(notes)),
        facts=facts,
    )


def _verdict(job: JobFile) -> tuple[Status, Reason | None, str | None]:
    """By our own rules: what came after an early stop counts too, except for how milabench then ended the process."""
    code = job.return_code
    error = f": {job.said.errors[0]}" if job.said.errors else ""
    if job.end is None:
        return Status.FAILED, Reason.AGENT_LOST, "the file has no end: milabench or the machine went away"
    if not job.said.stopped and code != 0:
        if isinstance(code, int) and code < 0:
            return Status.FAILED, Reason.SIGNALLED, f"ended by signal {-code}{error}"
        return Status.FAILED, Reason.CRASHED, f"exit code {code}{error}"
    if job.has_nan_loss:
        return Status.FAILED, Reason.INVALID, "a loss is not a finite number"
    if not any(job.said.rates.values()):
        return Status.FAILED, Reason.NO_DATA, f"the file holds no rate{error}"
    return Status.OK, None, None


def _measurements(job: JobFile, seat: dict[str, str]) -> list[Measurement]:
    said = job.said
    found = []
    for task, seen in said.rates.items():
        rates = tuple(s.value for s in seen)
        metric = "rate" if task == TRAIN else f"{task}.rate"
        found.append(
            _one(metric, said.units.get(task), Direction.HIGHER, rates, "loop", "median", seat | {"loop": task})
        )
    given = {(task, "loss"): losses for task, losses in said.losses.items()} | said.values
    for (task, key), values in given.items():
        metric = key if task in (TRAIN, UNNAMED) else f"{task}.{key}"
        found.append(_one(metric, None, guess_direction(key), tuple(values), "give", "last", seat))
    series: dict[tuple[str, str], list[float]] = {}
    for gpu in said.gpus:
        for name, value in gpu.values.items():
            series.setdefault((name, gpu.device), []).append(value)
    for (name, device), values in series.items():
        metric, unit, direction, aggregate = _GPU[name]
        found.append(_one(metric, unit, direction, tuple(values), "sampler", aggregate, seat | {"device": device}))
    if said.memory_peaks:
        found.append(_one("gpu.memory_peak", "B", Direction.LOWER, tuple(said.memory_peaks), "give", "max", seat))
    return found


def _one(
    metric: str,
    unit: str | None,
    direction: Direction,
    samples: tuple[float, ...],
    source: str,
    aggregate: str,
    labels: dict[str, str],
) -> Measurement:
    return Measurement(
        metric=metric,
        unit=unit,
        direction=direction,
        samples=samples,
        source=source,
        aggregate=aggregate,
        labels=labels,
    )


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
