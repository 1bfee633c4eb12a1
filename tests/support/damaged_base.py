"""A base folder with one of everything that benchwright keeps, to be damaged."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from kept_runs import Kept

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command, Environment, Placement, Runner, Script
from benchwright.core.job import Job, Outcome
from benchwright.core.metric import MetricSpec
from benchwright.core.model import FoundInput, Model
from benchwright.core.stop_rule import StopRule
from benchwright.core.system import SuitePaths
from benchwright.executors.base import Listener
from benchwright.executors.fake import FakeExecutor
from benchwright.executors.local import LocalExecutor
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options
from benchwright.results.admin import annotate_run
from benchwright.results.kept_runs import Results
from benchwright.runner.measure import measure
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.checksums import Checksums
from benchwright.runs.importers import import_results
from benchwright.runs.read_run import read_run
from benchwright.runs.run_folder import RunFolder

IMPORTS = Path(__file__).parents[1] / "compat" / "imports"


class EveryEvent(FakeExecutor):
    """Writes one of every event that a stream can hold."""

    def __init__(self) -> None:
        with LocalExecutor() as here:
            super().__init__({}, machine=here.machine())

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        for job in jobs:
            with open(job.stream, "a", encoding="utf-8") as stream:
                stream.writelines(json.dumps(event, separators=(",", ":")) + "\n" for event in every_event(job))
            Path(job.log + ".gz").write_bytes(gzip.compress(b"speed=5\nspeed=6\nTraceback\n"))
        return [Outcome(job=job.id, exit_code=0, duration_s=1.0) for job in jobs]


def every_event(job: Job) -> list[dict[str, Any]]:
    t = time.perf_counter_ns()
    loop = {"process": 7, "t": t, "loop": 1}
    steps = {**loop, "event": "steps", "wait_ns": [10, 20, 30, 40], "items": 4}
    voir = [
        {"task": "train", "rate": 10.5, "units": "items/s", "time": 1.0},
        {"task": "train", "rate": 11.5, "units": "items/s", "time": 2.0},
        {"task": "train", "loss": 0.5},
        {"task": "train", "progress": [1, 2]},
        {"task": "main", "gpudata": {"0": {"memory": [10, 100], "load": 0.5, "temperature": 40, "power": 100}}},
        {"task": "main", "memory_peak": 12.0, "units": "MiB"},
        {"$event": "phase", "$data": {"name": "run_script"}},
        {"$event": "measure_begin", "$data": {"t": t, "rates": {"train": 1}}},
        {"$event": "measure_end", "$data": {"t": t + 10**9, "rates": {"train": 2}}},
        {"$event": "overseer_error", "$data": {"type": "ValueError", "message": "instrument"}},
    ]
    return [
        {"event": "stream", "t": t, "version": 1, "job": job.id, "wall": time.time()},
        {"event": "start", "t": t, "wall": time.time(), "pid": 5, "argv": list(job.argv), "cwd": job.cwd, "env": {},
         "devices": [0], "cores": [0, 1]},
        {"event": "probe", "process": 7, "version": 1, "benchprobe": "0.1", "t": t, "wall": time.time(), "rank": None,
         "parent": 5, "python": "3.11.0", "executable": "python", "prefix": "/x", "path": ["/x"], "argv": ["x"]},
        {"event": "loop", **loop, "name": "train", "total": 20, "parent": None, "batch_size": 4, "counts": True},
        {**steps, "first": 0, "phase": "warmup", "step_ns": [100, 200, 300, 400], "given": {"loss": [[0, 2], [1.5, 1.25]]}},
        {"event": "measure", **loop, "step": 4, "warmup": "given", "waited_ns": 5},
        {**steps, "first": 4, "phase": "measured", "step_ns": [1000, 2000, 3000, 4000], "items": [4, 4, 4, 3],
         "given": {"loss": [[0], [0.5]], "ttft_ms": [[0, 1, 2], [1.0, 2.0, 3.0]], "note": [[1], ["text"]]}},
        {**steps, "first": 8, "phase": "measured", "step_ns": [1000, 2000, 3000, 4000],
         "given": {"loss": [None, {"float64": "AAAAAAAA8D8AAAAAAAAAQAAAAAAAAAhAAAAAAAAAEEA="}]}},
        {**steps, "first": 12, "phase": "measured", "step_ns": [1000, 2000, 3000, 4000],
         "device_ns": [900, 1900, 2900, 3900], "window_ns": 11000},
        {**steps, "first": 16, "phase": "after", "step_ns": [1000, 2000, 3000, 4000]},
        {"event": "stop", **loop, "step": 16, "rule": "precision", "steps": 12, "by": "rule", "detail":
         {"median_ns": 2000, "half_width": 0.01, "effective_samples": 10, "reached": True, "looks": 2}},
        {"event": "loop_end", **loop, "steps": 20, "how": "stopped"},
        {"event": "loop", **(loop | {"loop": 2}), "name": "eval", "total": None, "parent": 1, "batch_size": None,
         "counts": False},
        {**steps, "loop": 2, "first": 0, "phase": "measured", "step_ns": [10, 20, 30, 40], "items": None},
        {"event": "loop_end", **(loop | {"loop": 2}), "steps": 4, "how": "exhausted"},
        {"event": "give", "process": 7, "t": t, "values": {"accuracy": 0.75, "name": "x"}},
        {"event": "phase", "process": 7, "t": t, "name": "load", "edge": "begin"},
        {"event": "message", "process": 7, "t": t, "severity": "warning", "source": "benchprobe", "text": "careful"},
        {"event": "lost", "process": 7, "t": t, "events": 2},
        {"event": "sample", "t": t + 100, "sampler": "process", "values": {"rss_bytes": 1000, "cpu_percent": 50.0, "cpu_s": 1.0,
         "processes": 1}, "processes": {"5": {"rss_bytes": 1000}}},
        {"event": "sample", "t": t + 200, "sampler": "nvidia", "device": 0, "values": {"memory_bytes": 10, "load_percent": 9,
         "power_w": 5.0, "energy_j": 10.0, "sm_clock_mhz": 1000, "temperature_c": 50, "throttle": 4}},
        {"event": "sample", "t": t + 10**9, "sampler": "nvidia", "device": 0, "values": {"energy_j": 20.0}},
        {"event": "sample", "t": t + 300, "sampler": "machine", "values": {"load_1m": 1.0, "steal_percent": 0.0,
         "own_share": 0.5}},
        {"event": "metric", "t": t, "name": "speed", "values": [5.0, 6.0], "lines": [1, 2]},
        {"event": "reported", "dialect": "voir", "t": t, "lines": [json.dumps(line) for line in voir]},
        {"event": "model", "process": 7, "t": t, "identity": "abc", "class": "Net", "qualified": "m.Net", "parameters": 10,
         "parameter_bytes": 40, "place": {"file": "m.py", "line": 3}, "inputs": [{"name": "x", "shape": [1, 2],
         "dtype": "float32"}], "items": 1, "calls": 2, "mode": "inference", "flops": 20.0},
        {"event": "discovery_end", "process": 7, "t": t, "models": 1, "hook_lost": False, "processes_started": 0,
         "exception": None},
        {"event": "runtime", "process": 7, "t": t, "name": "torch-eager", "version": "2.6", "device": "cpu", "provider": None,
         "threads": 2, "wait_policy": "PASSIVE", "precision": "fp32", "streams": 1, "details": {"a": 1}},
        {"event": "build_begin", "process": 7, "t": t, "step": "export"},
        {"event": "build_step", "process": 7, "t": t, "step": "export", "seconds": 0.5, "cached": False, "ok": True,
         "detail": None, "versions": {"torch": "2.6"}},
        {"event": "measured", "process": 7, "t": t, "metric": "time.load", "unit": "s", "direction": "lower",
         "values": [0.25], "labels": {"part": "a"}},
        {"event": "measured", "process": 7, "t": t, "metric": "op.time", "unit": "s", "direction": "lower",
         "values": [0.5, 0.25], "labels": {"op": "aten::mm"}},
        {"event": "check", "process": 7, "t": t, "name": "outputs", "ok": True, "detail": "", "figures": {"max_abs": 1e-6,
         "relative_l2": 1e-6, "cosine": 0.999, "tolerance": 1e-4, "reference": "float64 eager"}},
        {"event": "extraction", "metrics": {"speed": {"matches": 2, "unparsed": 1, "unparsed_examples": [{"line": 2, "text": "x"}],
         "cut_off": 1, "cut_off_lines": [3], "given_up": False, "nearest": [{"line": 1, "text": "speed"}]}}, "lines": 3, "bytes": 30,
         "long_lines": 0},
        {"event": "probe_end", "process": 7, "t": t + 5 * 10**8, "how": "end"},
        {"event": "end", "t": t + 10**9, "wall": time.time(), "exit_code": 0, "signal": None, "timed_out": False,
         "stopped": False, "out_of_memory": False, "duration_s": 1.0, "cpu_s": 0.5, "max_rss_bytes": 1 << 20,
         "max_rss_is_bound": True, "detail": None},
    ]  # fmt: skip


def _command(base: Path) -> Benchmark:
    return Benchmark(
        name="speed",
        workload=Command(argv=("true",), cwd="/"),
        source="command line",
        metrics=(MetricSpec(name="speed", pattern=r"speed=(\d+)"),),
        stop=StopRule(precision=0.01),
        env={"A": "1"},
        labels={"who": "me"},
        tags=("mine",),
        parameters={"size": "4"},
        result_prefix="task",
        notes=("a note",),
    )


def _model(base: Path) -> Benchmark:
    workload = Model(
        runtime="torch-eager", python="python", cwd="/", script="m.py", identity="abc", class_="Net", parameters=10,
        place="m.py:3", inputs=(FoundInput(name="x", shape=(1, 2), dtype="float32"),), items=1, builds=str(base / "builds"),
    )  # fmt: skip
    return Benchmark(name="net", workload=workload, source="m.py")


def _suite(base: Path) -> Benchmark:
    code = base / "definition"
    code.mkdir(parents=True)
    (code / "main.py").write_text("")
    folder = BenchmarkFolder(
        path=str(code), group="g", prepare_script=None,
        runner=Runner(name="voir", dialect="milabench", settings={"options": {"stop": 2}}), config={"env": {"A": "1"}},
    )  # fmt: skip
    workload = Script(path=f"{code}/main.py", args=("--batch-size", "auto_batch(8)"), cwd=str(code), python="")
    return Benchmark(
        name="voir",
        workload=workload,
        source="suite.yaml",
        environment=Environment(name="g", folder=str(code), requirements=(), packages=("voir",)),
        folder=folder,
        weight=2.0,
        placement=Placement(per_device=True),
    )


def _paths(base: Path) -> SuitePaths:
    places: dict[str, Any] = {name: str(base / name) for name in ("data", "extra", "cache", "venv", "runs")}
    return SuitePaths(base=str(base), python="python", **places)


def make_base(base: Path) -> None:
    """Three runs with one of every event each (`command`, `model`, `suite`), one unfinished, one whole neighbour."""
    made = BaseFolder(base)
    for name, benchmark, paths in (
        ("command", _command(base), None),
        ("model", _model(base), None),
        ("suite", _suite(base), _paths(base)),
        ("unfinished", msgspec.structs.replace(_command(base), metrics=()), None),
    ):
        options = Options(repeat=2, suite_paths=paths, validations=("ensure_rate",) if paths else ())
        measure([benchmark], options, base=made, name=name, executor=EveryEvent(), labels={"branch": "main"})
    _unfinish(next((base / "runs").glob("unfinished.*")))
    neighbour = Kept(base)("neighbour", (0.1, 0.2), repeat=2)
    with Results(made, str(base / "store.db")) as results:
        annotate_run(results, "command", "with the new kernel")
        results.set_baseline("other", "command")
        for folder in (base / "runs").iterdir():
            results.ingest(RunFolder(folder))
        results.share_baseline("main", results.set_baseline("main", neighbour.id))
        for run in import_results(IMPORTS / "hyperfine.json").runs:
            results.keep(run)
        for name in ("model", "suite"):  # with every fact that a launch can have
            whole = read_run(results.folder(name), kind_of)
            results.keep(msgspec.structs.replace(whole, id=f"import.{name}", uid="", folder="/nowhere"))


def _unfinish(folder: Path) -> None:
    """As if benchwright had been killed before its last launch."""
    for stream in folder.glob("*.R1.*"):
        stream.unlink()
        Checksums(folder).forget(stream.name)
    body = json.loads((folder / "run.json").read_text()) | {"ended": None, "status": "interrupted"}
    (folder / "run.json").write_text(json.dumps(body))


def copied(base: Path, to: Path) -> Path:
    """A copy that shares the folder of programs, which is large and never damaged."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(base, to, symlinks=True, ignore=shutil.ignore_patterns("artifacts"))
    if (base / "artifacts").exists():
        (to / "artifacts").symlink_to(base / "artifacts")
    return to


def files_of(run: str, base: Path) -> dict[str, Path]:
    folder = next((base / "runs").glob(f"{run}.*"))
    return {name: folder / name for name in sorted(os.listdir(folder))}
