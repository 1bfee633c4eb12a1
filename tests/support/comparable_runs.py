"""Runs made of launch values, for comparing."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Status

MACHINE = Machine(
    hostname="lab",
    system="Linux",
    kernel="6.1",
    architecture="x86_64",
    cpu="A CPU",
    cores=2,
    cores_total=4,
    memory_bytes=8 << 30,
    python="3.11.2",
)


def benchmark(name: str = "sort", *argv: str, **more: object) -> Benchmark:
    return Benchmark(name=name, workload=Command(argv=argv or ("sort", "x"), cwd="/tmp"), source="command line", **more)  # type: ignore[arg-type]


def launch(values: dict[str, float], block: int | None, direction: Direction) -> Launch:
    return Launch(
        job=f"j{block}",
        status=Status.OK,
        block=block,
        measurements=tuple(
            Measurement(metric=m, unit="s", direction=direction, samples=(v,), source="loop") for m, v in values.items()
        ),
    )


def result(
    of: Benchmark,
    values: Sequence[float] | Sequence[dict[str, float]],
    *,
    direction: Direction = Direction.LOWER,
    blocks: Sequence[int | None] | None = None,
) -> Result:
    """One launch for each value of `time`, or for each set of metrics."""
    sets = [v if isinstance(v, dict) else {"time": v} for v in values]
    places = blocks or [None] * len(sets)
    launches = tuple(launch(v, b, direction) for v, b in zip(sets, places, strict=True))
    return Result(benchmark=of, status=Status.OK, launches=launches)


def run(
    *results: Result, id: str = "run.1", machine: Machine = MACHINE, packages: dict[str, dict[str, str]] | None = None
) -> Run:
    return Run(
        id=id,
        name="run",
        started="2026-11-15T00:00:00+00:00",
        folder="/nowhere",
        status=Status.OK,
        machine=machine,
        results=results,
        packages=packages or {},
    )
