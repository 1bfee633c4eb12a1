"""Runs of several machines over weeks, for the pages of a server: steady, one that regressed, one that began to fail."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import builders
from builders import benchmark, launch, measurement

from benchwright.core.metric import Direction
from benchwright.core.provenance import CodeRevision
from benchwright.core.run import Result, Run
from benchwright.core.status import Reason, Status

HOSTS = {"alpha": ("EPYC 9654", 1.0), "beta": ("Xeon 8480", 1.4), "gamma": ("Grace", 2.0)}
REGRESSED = "resnet50 training"
FAILING = "bert inference"
STEADY = "data loading"
END = datetime(2026, 11, 17, 6, tzinfo=UTC)


def shared_runs(days: int = 40, end: datetime = END, *, launches: int = 6, hostile: str = "") -> Iterator[Run]:
    """One run a day and host, oldest first. `hostile`: text that is put into every name."""
    draw = random.Random(1)
    for day in range(days):
        for host, (cpu, speed) in HOSTS.items():
            when = end - timedelta(days=days - 1 - day)
            if host == "gamma" and day > days - 10:
                continue  # silent since then
            yield _run(day, days, host, cpu, speed, when, draw, launches, hostile)


def _run(
    day: int,
    days: int,
    host: str,
    cpu: str,
    speed: float,
    when: datetime,
    draw: random.Random,
    launches: int,
    hostile: str,
) -> Run:
    def measured(
        level: float, unit: str = "items/s", metric: str = "rate", direction: Direction = Direction.HIGHER
    ) -> Result:
        name = {100.0: REGRESSED, 900.0: STEADY}.get(level, FAILING) + hostile
        slower = 0.9 if level == 100.0 and host == "alpha" and day >= days - 15 else 1.0
        made = []
        for n in range(launches):
            value = level * speed * slower * draw.gauss(1.0, 0.006)
            made.append(
                launch(
                    measurement(value, value * 1.001, metric=metric, unit=unit, direction=direction, source="log"),
                    measurement(
                        0.3 / speed * draw.gauss(1.0, 0.01),
                        metric="energy.item",
                        unit="J",
                        direction=Direction.LOWER,
                        source="sampler",
                    ),
                    job=f"{name}.R{n}",
                    position=n,
                    launch=n,
                    duration_s=1.5,
                )
            )
        size = "64" if day >= days // 3 or host != "beta" else "32"
        return builders.result(benchmark(name, "train.py", "--batch", size, parameters={"batch": size}), *made)

    failed = host == "beta" and day >= days - 5
    last = builders.result(
        benchmark(FAILING + hostile, "bert.py"),
        launch(
            job="bert.R0", status=Status.FAILED, reason=Reason.OUT_OF_MEMORY, detail="CUDA has none left", exit_code=1
        ),
        status=Status.FAILED,
        reason=Reason.OUT_OF_MEMORY,
        detail="CUDA has none left",
    )
    commit = f"{day:02d}" + "ab12" * 10
    return builders.run(
        measured(100.0),
        measured(900.0),
        last if failed else measured(250.0),
        id=f"nightly{hostile}.{day:04d}.{host}",
        name=f"nightly{hostile}",
        status=Status.FAILED if failed else Status.OK,
        machine=builders.machine(hostname=host + hostile, cpu=cpu),
        started=when.isoformat(),
        ended=(when + timedelta(minutes=5)).isoformat(),
        labels={"branch": "main" + hostile},
        revisions=(
            CodeRevision(root="/code", commit=commit[:40], branch="main", modified=False, time=when.isoformat()),
        ),
    )
