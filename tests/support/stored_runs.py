"""Runs to store, and whether two are the same, NaN included."""

from __future__ import annotations

import math
from array import array
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.machine import Accelerator, Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, MetricSpec
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import Warmup

MACHINE = Machine(
    hostname="lab-1",
    system="Linux",
    kernel="6",
    architecture="x86_64",
    cpu="c",
    cores=2,
    cores_total=4,
    memory_bytes=1 << 34,
    python="3.11",
    accelerators=(Accelerator(index=0, name="H", memory_bytes=1 << 37),),
)
ODD_SAMPLES = (1.5, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308)


def measurement(*samples: float, metric: str = "rate", **fields: Any) -> Measurement:
    fields = {"unit": "items/s", "direction": Direction.HIGHER, "source": "loop"} | fields
    return Measurement(metric=metric, samples=samples, **fields)


def launch(*measurements: Measurement, **fields: Any) -> Launch:
    return Launch(**{"job": "resnet.D0", "status": Status.OK, "measurements": measurements} | fields)


def result(*launches: Launch, name: str = "resnet", status: Status = Status.OK, **fields: Any) -> Result:
    labels = fields.pop("labels", {})
    benchmark = Benchmark(
        name=name,
        workload=Command(argv=("train", "--lr", "1"), cwd="/"),
        source="command line",
        metrics=(MetricSpec(name="loss", pattern=r"loss=(\d+)"),),
        warmup=Warmup(),
        env={"A": None, "B": "1"},
        labels=labels,
        notes=("read so",),
    )
    return Result(benchmark=benchmark, status=status, launches=launches, **fields)


def run(id: str = "run.1", *results: Result, **fields: Any) -> Run:
    fields = {
        "name": id.partition(".")[0],
        "started": "2026-11-14T10:00:00+01:00",
        "folder": f"/nowhere/{id}",
        "status": Status.OK,
        "machine": MACHINE,
    } | fields
    return Run(id=id, results=results, **fields)


def rich_run(id: str = "rich.1", **fields: Any) -> Run:
    """One of everything a run can hold."""
    facts = {
        "started": True,
        "measured_ns": (1, 2**60),
        "huge": (1, 2**70),
        "loops": [{"name": "train", "half_width": math.inf, "warmup": None, "pair": [(1, 2), "é\x00"]}],
    }
    good = launch(
        measurement(*ODD_SAMPLES, warmup_samples=(9.0, math.nan)),
        measurement(0.25, 0.5, metric="loss", unit=None, direction=Direction.LOWER, labels={"rank": "1", "é": '"'}),
        measurement(metric="nothing", source="give", aggregate="last"),
        notes=(Note(text="noisy", evidence="0.81"),),
        facts=facts,
        repeat=0,
        devices=(0, 1),
        duration_s=1.25,
        exit_code=0,
    )
    warm = launch(measurement(3.0), warmup=True)
    bad = launch(status=Status.FAILED, reason=Reason.CRASHED, detail="Traceback\n\x1b[31m", exit_code=3)
    return run(
        id,
        result(warm, good, good, labels={"suite": "nightly"}),
        result(bad, name="bert", status=Status.FAILED, reason=Reason.CRASHED, detail="why", overlap=0.5),
        result(name="skipped", status=Status.SKIPPED, reason=Reason.LACKS_DEVICES),
        **{
            "status": Status.FAILED,
            "ended": "2026-11-14T10:01:00+01:00",
            "labels": {"branch": "main", "who": "Zoë"},
            "notes": (Note(text="busy"),),
            "packages": {"/usr/bin/python": {"torch": "2.13.0"}},
        }
        | fields,
    )


def big_run(id: str, *, samples: int, benchmarks: int = 1) -> Run:
    """`samples` numbers that cannot be compressed much, spread over `benchmarks`."""
    import random

    each = samples // benchmarks
    numbers = random.Random(1)
    return run(
        id,
        *(
            result(launch(measurement(*(numbers.lognormvariate(-4, 0.1) for _ in range(each)))), name=f"b{i}")
            for i in range(benchmarks)
        ),
    )


def same(a: Run, b: Run) -> bool:
    """Equal, where NaN equals NaN of the same bits."""
    return _bits(a) == _bits(b)


def _bits(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", array("d", [value]).tobytes())
    if isinstance(value, msgspec.Struct):
        return (type(value).__name__, [(f, _bits(getattr(value, f))) for f in value.__struct_fields__])
    if isinstance(value, dict):
        return {k: _bits(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return (type(value).__name__, [_bits(v) for v in value])
    return value
