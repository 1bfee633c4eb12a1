"""Runs to store, and whether two are the same, NaN included."""

from __future__ import annotations

import math
from array import array
from typing import Any

import builders
import msgspec
from builders import benchmark, launch, measurement

from benchwright.core.machine import Accelerator
from benchwright.core.metric import Direction, MetricSpec
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import Warmup

MACHINE = builders.machine(Accelerator(index=0, name="H", memory_bytes=1 << 37), hostname="lab-1")
ODD_SAMPLES = (1.5, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308)


def result(*launches: Launch, name: str = "resnet", labels: dict[str, str] | None = None, **fields: Any) -> Result:
    """Of a benchmark with one of everything."""
    rich = benchmark(
        name,
        *("train", "--lr", "1"),
        metrics=(MetricSpec(name="loss", pattern=r"loss=(\d+)"),),
        warmup=Warmup(),
        env={"A": None, "B": "1"},
        labels=labels or {},
        notes=("read so",),
    )
    return builders.result(rich, *launches, **fields)


def run(id: str = "run.1", *results: Result, **fields: Any) -> Run:
    return builders.run(*results, id=id, **({"machine": MACHINE, "started": "2026-11-14T10:00:00+01:00"} | fields))


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
        launch=0,
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
    return bool(_bits(a) == _bits(b))


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
