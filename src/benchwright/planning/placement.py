"""Which processes a launch consists of, where each runs, and in which order the launches go."""

from __future__ import annotations

import os.path
from collections.abc import Sequence

import msgspec

from benchwright.domain.benchmark import Benchmark, Command
from benchwright.domain.errors import InvalidInput
from benchwright.domain.job import Barrier, Job
from benchwright.domain.machine import Machine
from benchwright.domain.run import Plan
from benchwright.domain.settings import RunSettings
from benchwright.domain.status import Reason
from benchwright.domain.stop_rule import probe_settings
from benchwright.planning.order import balanced_blocks
from benchwright.planning.stems import stem


class Slot(msgspec.Struct, frozen=True):
    """One launch in the order: which benchmark, which repetition."""

    benchmark: int
    repeat: int | None
    warmup: bool
    block: int | None


def make_plan(
    benchmarks: Sequence[Benchmark],
    machine: Machine,
    settings: RunSettings,
    *,
    folder: str,
    probe_path: str | None,
    usable_cores: Sequence[int],
) -> Plan:
    """Jobs of every benchmark in the order they will be launched; what this machine cannot run is skipped with its reason."""
    for benchmark in benchmarks:
        _check_cores(benchmark, usable_cores)
    skipped = {b.name: why for b in benchmarks if (why := why_skipped(b, machine)) is not None}
    runnable = [b for b in benchmarks if b.name not in skipped]
    launches = []
    for position, slot in enumerate(order_of_launches(len(runnable), settings)):
        benchmark = runnable[slot.benchmark]
        launches.append(_jobs(benchmark, slot, position, machine, settings, folder=folder, probe_path=probe_path))
    return Plan(benchmarks=tuple(benchmarks), launches=tuple(launches), skipped=skipped)


def why_skipped(benchmark: Benchmark, machine: Machine) -> tuple[Reason, str] | None:
    """The reason and a sentence, or None if the machine can run it."""
    if not benchmark.enabled:
        return Reason.DISABLED, "not enabled"
    needed, there = benchmark.placement.needs_devices, len(machine.accelerators)
    if needed > there:
        has = {0: "no GPU", 1: "1 GPU"}.get(there, f"{there} GPUs")
        return (
            Reason.LACKS_DEVICES,
            f"needs {needed} GPU{'s' if needed > 1 else ''}, this machine has {has}; --num-gpus {there} runs it on what is there",
        )
    return None


def order_of_launches(count: int, settings: RunSettings) -> list[Slot]:
    """Warm-up launches first; then one benchmark after the other, or interleaved in balanced blocks."""
    numbered = settings.repeat > 1
    if not settings.interleave or count < 2:
        slots = []
        for benchmark in range(count):
            slots += [Slot(benchmark, n, True, None) for n in range(settings.warmup_runs)]
            slots += [Slot(benchmark, n if numbered else None, False, None) for n in range(settings.repeat)]
        return slots
    slots = [Slot(benchmark, n, True, None) for n in range(settings.warmup_runs) for benchmark in range(count)]
    for block, row in enumerate(balanced_blocks(count, settings.repeat, start=settings.seed)):
        slots += [Slot(benchmark, block if numbered else None, False, block) for benchmark in row]
    return slots


def _check_cores(benchmark: Benchmark, usable_cores: Sequence[int]) -> None:
    for core in benchmark.placement.cores or ():
        if core not in usable_cores:
            usable = ",".join(str(c) for c in usable_cores)
            raise InvalidInput(
                f"{benchmark.name} is to be pinned to core {core}, which this process cannot use",
                where="--cores",
                remedy=f"choose from {usable}",
            )


def _jobs(
    benchmark: Benchmark,
    slot: Slot,
    position: int,
    machine: Machine,
    settings: RunSettings,
    *,
    folder: str,
    probe_path: str | None,
) -> tuple[Job, ...]:
    seats = _seats(benchmark, machine)
    launch = stem(benchmark.name, repeat=slot.repeat, warmup=slot.warmup)
    jobs = []
    for rank, seat in enumerate(seats):
        name = stem(benchmark.name, repeat=slot.repeat, warmup=slot.warmup, device=seat.device, job=seat.job)
        together = Barrier(folder=os.path.join(folder, ".barrier", launch), size=len(seats), rank=rank)
        jobs.append(
            Job(
                id=name,
                benchmark=benchmark.name,
                argv=argv_of(benchmark),
                shell=isinstance(benchmark.workload, Command) and benchmark.workload.shell,
                cwd=benchmark.workload.cwd,
                stream=os.path.join(folder, name + ".data"),
                log=os.path.join(folder, name + ".log"),
                env=benchmark.env,
                devices=seat.devices,
                cores=benchmark.placement.cores,
                timeout_s=benchmark.timeout_s,
                grace_s=settings.grace_s,
                metrics=benchmark.metrics,
                probe=probe_settings(benchmark.stop, benchmark.warmup, benchmark.loop),
                probe_path=probe_path,
                barrier=together if len(seats) > 1 else None,
                sample_interval_s=settings.sample_interval_s,
                echo=settings.echo,
                discard_log=settings.discard_logs,
                repeat=slot.repeat,
                warmup=slot.warmup,
                block=slot.block,
                position=position,
            )
        )
    return tuple(jobs)


class _Seat(msgspec.Struct, frozen=True):
    devices: tuple[int, ...] = ()
    device: int | None = None
    job: int | None = None


def _seats(benchmark: Benchmark, machine: Machine) -> list[_Seat]:
    placement = benchmark.placement
    if placement.per_device and machine.accelerators:
        return [_Seat(devices=(a.index,), device=a.index) for a in machine.accelerators]
    if placement.per_device or placement.jobs == 1:
        devices = tuple(a.index for a in machine.accelerators[: placement.needs_devices])
        return [_Seat(devices=devices, device=devices[0] if devices else 0)]
    return [_Seat(job=n) for n in range(placement.jobs)]


def argv_of(benchmark: Benchmark) -> tuple[str, ...]:
    """What is executed; for a shell command its one line."""
    workload = benchmark.workload
    if isinstance(workload, Command):
        return workload.argv
    return (workload.python, workload.path, *workload.args)
