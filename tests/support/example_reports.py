"""Runs made up for the tests of reports: ordinary, with odd names, and large."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import builders

from benchwright.analysis.summary import summarize
from benchwright.core.aggregates import aggregate
from benchwright.core.machine import Accelerator
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.options.table import Options
from benchwright.report.base import Report

MACHINE = builders.machine(
    Accelerator(index=0, name="Example GPU", memory_bytes=80 << 30, driver="555.1"),
    hostname="node-7",
    cpu="Example Processor 9000",
    cores=16,
    cores_total=32,
    memory_bytes=128 << 30,
    cpu_governor="performance",
)
ODD_NAMES = (
    "<script>window.harmed = 'script'</script>",
    "</script><script>window.harmed = 'end of script'</script>",
    '"><img src=x onerror="window.harmed = \'image\'">',
    "'onmouseover='window.harmed=1' quote\" & ampersand",
    "a name of three hundred letters without a space ".replace(" ", "_").ljust(300, "x"),
    "../../etc/passwd/..\\..\\windows",
    "emoji 🚀🔥 and ‮turned around‬ and é \x00\x1b[31m",
    "{{ 7 * 7 }} ${7 * 7} %s javascript:alert(1)",
)


def measurement(metric: str, samples: Sequence[float], unit: str | None = None, **fields: Any) -> Measurement:
    direction = Direction.LOWER if unit in ("s", "B") else Direction.HIGHER
    return builders.measurement(*samples, metric=metric, unit=unit, **({"direction": direction} | fields))


def loop_launch(name: str, launch: int, *, steps: int, warmup: int, seed: int, speed: float = 1000.0) -> Launch:
    """A training loop's launch: slow first steps, one outlier, memory that grows and a device."""
    draw = random.Random(f"{name} {launch} {seed}")
    pace = draw.gauss(1, 0.01)
    times = [32 / speed * pace * draw.lognormvariate(0, 0.04) for _ in range(steps)]
    times[steps // 2] *= 1.6
    warm = [32 / speed * (1 + 3 * math.exp(-i / 3)) * draw.lognormvariate(0, 0.05) for i in range(warmup)]
    labels = {"loop": "train"}
    beside = [(3 + 2 * (1 - math.exp(-i / 6))) * 2**30 for i in range(40)]
    watts = [310 + draw.gauss(0, 9) for _ in range(40)]
    return Launch(
        job=f"{name}.R{launch}.D0",
        status=Status.OK,
        launch=launch,
        position=launch,
        duration_s=sum(times) + sum(warm) + 2.0,
        exit_code=0,
        measurements=(
            measurement(
                "rate", [32 / t for t in times], "items/s", warmup_samples=tuple(32 / t for t in warm), labels=labels
            ),
            measurement("step_time", times, "s", warmup_samples=tuple(warm), labels=labels),
            measurement("loss", [2 / (1 + i) for i in range(steps)], None, source="give", aggregate="last"),
            measurement("memory.rss", beside, "B", source="sampler", aggregate="max"),
            measurement(
                "gpu.power",
                watts[10:],
                "W",
                source="sampler",
                warmup_samples=tuple(w / 2 for w in watts[:10]),
                labels={"device": "0"},
                aggregate="average",
            ),
            measurement("process.duration", [sum(times) + sum(warm) + 2.0], "s", source="process"),
            measurement("memory.peak_rss", [max(beside)], "B", source="process"),
        ),
    )


def result(name: str, launches: Sequence[Launch] = (), status: Status = Status.OK, **fields: Any) -> Result:
    env = {"OMP_NUM_THREADS": "4", "API_TOKEN": "never-shown"}
    benchmark = builders.benchmark(name, "python", "train.py", "--model", name, env=env)
    return builders.result(benchmark, *launches, status=status, **fields)


def report(results: Sequence[Result], **fields: object) -> Report:
    failed = any(r.status is Status.FAILED for r in results)
    run = Run(
        id="nightly.2026-11-15_03:39:49",
        name="nightly",
        started="2026-11-15T03:39:49+01:00",
        ended="2026-11-15T03:52:11+01:00",
        folder="/home/user/bench/runs/nightly.2026-11-15_03:39:49",
        status=Status.FAILED if failed else Status.OK,
        machine=MACHINE,
        results=tuple(results),
        labels={"branch": "main"},
        packages={"/usr/bin/python3": {"torch": "2.13.0", "numpy": "2.4.6"}},
    )
    summaries = {r.benchmark.name: summarize(r.counted) for r in results}
    given = {"options": Options(repeat=6)} | fields
    return Report(run=run, summaries=summaries, aggregate=aggregate, **given)  # type: ignore[arg-type]


def ordinary_report() -> Report:
    """Two loops, one noisy; one that crashed, one that was skipped."""
    steady = [loop_launch("resnet50", i, steps=120, warmup=12, seed=1) for i in range(6)]
    noisy = [loop_launch("bert-base", i, steps=60, warmup=5, seed=2, speed=400 * (1 + 0.2 * (i % 3))) for i in range(6)]
    noisy = [
        Launch(
            **{f: getattr(x, f) for f in x.__struct_fields__}
            | {"notes": (Note(text="GPU 0 lowered its clock: power cap"),)}
        )
        for x in noisy
    ]
    crashed = Launch(
        job="llama.R0.D0", status=Status.FAILED, reason=Reason.OUT_OF_MEMORY, detail="exit code 1", exit_code=1
    )
    return report(
        [
            result("resnet50", steady),
            result("bert-base", noisy),
            result("llama", [crashed], Status.FAILED, reason=Reason.OUT_OF_MEMORY, detail="CUDA out of memory"),
            result(
                "moe-8x", (), Status.SKIPPED, reason=Reason.LACKS_DEVICES, detail="needs 8 GPUs, this machine has 1"
            ),
        ],
        log_tails={"llama.R0.D0": ["step 1", "torch.OutOfMemoryError: CUDA out of memory <b>now</b>"]},
        logs={"resnet50.R0.D0": ["epoch 1", "done & dusted"]},
    )


def odd_report() -> Report:
    """Every text a user can choose is hostile."""
    results = []
    for number, name in enumerate(ODD_NAMES):
        samples = [float(i + 1) for i in range(20)]
        launches = [
            Launch(
                job=f"{name}.R{i}.D0",
                status=Status.OK,
                position=i,
                detail=name,
                notes=(Note(text=name, evidence=name),),
                measurements=(measurement(name, samples, name, labels={name: name}),),
            )
            for i in range(2)
        ]
        results.append(result(name, launches))
        if number % 3 == 0:
            bad = Launch(job=f"bad{name}", status=Status.FAILED, detail=name)
            results.append(result(f"bad{name}", [bad], Status.FAILED, reason=Reason.CRASHED, detail=name))
    tails = {x.job: list(ODD_NAMES) for r in results for x in r.launches}
    made = report(results, log_tails=tails, logs=tails)
    run = made.run
    fields = {f: getattr(run, f) for f in run.__struct_fields__}
    odd = Run(
        **fields
        | {
            "name": ODD_NAMES[1],
            "labels": {ODD_NAMES[0]: ODD_NAMES[2]},
            "packages": {ODD_NAMES[1]: {ODD_NAMES[0]: ODD_NAMES[2]}},
        }
    )
    return Report(**{f: getattr(made, f) for f in made.__struct_fields__} | {"run": odd})


def large_report(benchmarks: int, samples: int, launches: int = 10) -> Report:
    """Each benchmark with `samples` samples over its launches."""
    results = []
    for number in range(benchmarks):
        name = f"suite/group-{number % 8}/benchmark_{number:03d}"
        draw = random.Random(number)
        middle = draw.lognormvariate(-4, 2)
        made = []
        for i in range(launches):
            values = [middle * draw.lognormvariate(0, 0.05) for _ in range(samples // launches)]
            made.append(
                Launch(
                    job=f"{name}.R{i}.D0",
                    status=Status.OK,
                    position=i,
                    duration_s=sum(values),
                    measurements=(
                        measurement("latency", values, "s"),
                        measurement("process.duration", [sum(values)], "s", source="process"),
                        measurement("memory.peak_rss", [draw.uniform(1e8, 1e10)], "B", source="process"),
                    ),
                )
            )
        results.append(result(name, made))
    return report(results)
