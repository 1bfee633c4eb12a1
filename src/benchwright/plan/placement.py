"""Which processes a launch consists of, where each runs, and in which order the launches go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Barrier, Job
from benchwright.core.machine import Machine
from benchwright.core.model import Model, ModelScript
from benchwright.core.run import Plan
from benchwright.core.settings import MOST_LAUNCHES, RunSettings
from benchwright.core.status import Reason
from benchwright.core.stop_rule import probe_settings
from benchwright.plan.commands import plain_command
from benchwright.plan.file_names import stem
from benchwright.plan.model_jobs import model_command, model_settings
from benchwright.plan.order import balanced_blocks
from benchwright.plan.process_slots import Seat, plain_seats
from benchwright.plan.turns import barrier_of_turns, refuse_too_few, refuse_turns

if TYPE_CHECKING:
    from benchwright.plan.suite.jobs import SuiteJobs


class Slot(msgspec.Struct, frozen=True):
    """One launch in the order: which benchmark, which repetition."""

    benchmark: int
    repeat: int | None
    warmup: bool
    block: int | None
    place: int = 0  # in its block


def make_plan(
    benchmarks: Sequence[Benchmark],
    machine: Machine,
    settings: RunSettings,
    *,
    folder: str,
    probe_path: str | None,
    usable_cores: Sequence[int],
    not_ready: Mapping[str, str] | None = None,
    count_work: bool = False,
) -> Plan:
    """Jobs of every benchmark in the order they will be launched; what this machine cannot run is skipped with its reason.

    `not_ready`: benchmarks that lack their environment or data, with why. `count_work`: scripts whose
    models are looked for count their arithmetic too.
    """
    for benchmark in benchmarks:
        _check_cores(benchmark, usable_cores)
    suites = _suites(benchmarks, machine, settings, folder=folder, probe_path=probe_path)
    skipped = {b.name: why for b in benchmarks if (why := why_skipped(b, machine, suites)) is not None}
    for name, why_not in (not_ready or {}).items():
        skipped.setdefault(name, (Reason.NOT_READY, why_not))
    runnable = [b for b in benchmarks if b.name not in skipped]
    if settings.turn_s is not None:
        refuse_too_few(runnable)
    maker = _JobMaker(
        machine, settings, suites, folder=folder, probe_path=probe_path, count_work=count_work, count=len(runnable)
    )
    _check_count(len(runnable) * (settings.repeat + settings.warmup_runs))
    launches = [
        maker.jobs(runnable[slot.benchmark], slot, position)
        for position, slot in enumerate(order_of_launches(len(runnable), settings))
    ]
    notes = {b.name: said for b in runnable if suites and b.folder is not None and (said := suites.notes(b))}
    return Plan(benchmarks=tuple(benchmarks), launches=tuple(launches), skipped=skipped, notes=notes)


def _suites(
    benchmarks: Sequence[Benchmark], machine: Machine, settings: RunSettings, *, folder: str, probe_path: str | None
) -> SuiteJobs | None:
    """What plans the benchmarks of suites; None if there are none."""
    first = next((b for b in benchmarks if b.folder is not None), None)
    if first is None:
        return None
    if settings.suite_paths is None:
        raise InvalidInput(f"{first.name} is of a suite, which needs a base folder", where=first.source)
    from benchwright.plan.suite.jobs import SuiteJobs  # most runs need none of it

    return SuiteJobs(machine, settings.suite_paths, folder=folder, probe_path=probe_path)


def why_skipped(benchmark: Benchmark, machine: Machine, suites: SuiteJobs | None) -> tuple[Reason, str] | None:
    """The reason and a sentence, or None if it can run here."""
    if not benchmark.enabled:
        return Reason.DISABLED, "not enabled"
    if benchmark.fault is not None:
        return Reason.MISCONFIGURED, benchmark.fault
    if benchmark.withheld is not None:
        return Reason.NOT_MEASURABLE, benchmark.withheld
    if suites is not None and benchmark.folder is not None:
        return suites.why_skipped(benchmark)
    needed, there = benchmark.placement.needs_devices, len(machine.accelerators)
    if needed > there:
        has = {0: "no GPU", 1: "1 GPU"}.get(there, f"{there} GPUs")
        remedy = "--device cpu" if isinstance(benchmark.workload, Model) else f"--num-gpus {there}"
        needs = f"needs {needed} GPU{'s' if needed > 1 else ''}, this machine has {has}"
        return Reason.LACKS_DEVICES, f"{needs}; {remedy} runs it on what is there"
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
        repeat = block if numbered else None
        slots += [Slot(benchmark, repeat, False, block, place) for place, benchmark in enumerate(row)]
    return slots


def _check_cores(benchmark: Benchmark, usable_cores: Sequence[int]) -> None:
    for core in benchmark.placement.cores or ():
        if core not in usable_cores:
            usable = (
                ",".join(map(str, usable_cores))
                if len(usable_cores) < 64
                else f"{usable_cores[0]} to {usable_cores[-1]}"
            )
            raise InvalidInput(
                f"{benchmark.name} is to be pinned to core {core}, which this process cannot use",
                where="--cores",
                remedy=f"choose from {usable}",
            )


def _check_count(launches: int) -> None:
    if launches > MOST_LAUNCHES:
        raise InvalidInput(
            f"{launches:,} launches are more than the {MOST_LAUNCHES:,} a run can have",
            where="--repeat",
            remedy="repeat less often, or measure fewer benchmarks",
        )


class _JobMaker:
    """Makes the jobs of every launch of one plan."""

    def __init__(
        self,
        machine: Machine,
        settings: RunSettings,
        suites: SuiteJobs | None,
        *,
        folder: str,
        probe_path: str | None,
        count_work: bool,
        count: int,
    ) -> None:
        self._count_work = count_work
        self._count = count  # of benchmarks that are launched
        self._machine = machine
        self._settings = settings
        self._suites = suites
        self._folder = folder.rstrip("/")
        self._probe_path = probe_path

    def jobs(self, benchmark: Benchmark, slot: Slot, position: int) -> tuple[Job, ...]:
        """Those of one launch."""
        suites = self._suites if benchmark.folder is not None else None
        seats = plain_seats(benchmark, self._machine) if suites is None else suites.seats(benchmark)
        if self._settings.turn_s is not None:
            refuse_turns(benchmark, seats)
        probe = probe_settings(benchmark.stop, benchmark.warmup, benchmark.loop)
        probe |= model_settings(benchmark, self._machine, self._settings.seed, count_work=self._count_work)
        return tuple([self._job(benchmark, slot, position, seat, probe) for seat in seats])

    def _job(self, benchmark: Benchmark, slot: Slot, position: int, seat: Seat, probe: dict[str, Any]) -> Job:
        node = seat.node if seat.machines > 1 else None
        name = stem(benchmark.name, repeat=slot.repeat, warmup=slot.warmup, device=seat.device, job=seat.job, node=node)
        if isinstance(benchmark.workload, Model | ModelScript):
            command = model_command(benchmark, self._machine)
        elif self._suites is None or benchmark.folder is None:
            command = plain_command(benchmark)
        else:
            command = self._suites.command(benchmark, seat, name, slot.repeat)
        barrier = None
        if self._settings.turn_s is not None and slot.block is not None:
            barrier = barrier_of_turns(
                self._folder, slot.block, size=self._count, rank=slot.place, turn_s=self._settings.turn_s
            )
        elif seat.together > 1:
            launch = stem(benchmark.name, repeat=slot.repeat, warmup=slot.warmup, node=node)
            barrier = Barrier(folder=f"{self._folder}/.barrier/{launch}", size=seat.together, rank=seat.rank)
        return Job(
            id=name,
            benchmark=benchmark.name,
            argv=command.argv,
            shell=isinstance(benchmark.workload, Command) and benchmark.workload.shell,
            cwd=command.cwd,
            stream=f"{self._folder}/{name}.data",
            log=f"{self._folder}/{name}.log",
            env=command.env,
            keep_env=self._settings.keep_env,
            devices=seat.devices,
            cores=benchmark.placement.cores,
            node=seat.node,
            machines=seat.machines,
            timeout_s=_timeout_s(benchmark, barrier),
            grace_s=self._settings.grace_s,
            metrics=benchmark.metrics,
            probe=probe,
            probe_path=self._probe_path,
            barrier=barrier,
            sample_interval_s=self._settings.sample_interval_s,
            echo=self._settings.echo,
            discard_log=self._settings.discard_logs,
            repeat=slot.repeat,
            warmup=slot.warmup,
            block=slot.block,
            position=position,
            path=command.path,
            files=command.files,
            folders=command.folders,
            data_file=command.data_file,
        )


def _timeout_s(benchmark: Benchmark, barrier: Barrier | None) -> float | None:
    """Time in which others have their turn is not its own."""
    shared = barrier is not None and barrier.turn_s is not None
    if barrier is None or benchmark.timeout_s is None or not shared:
        return benchmark.timeout_s
    return benchmark.timeout_s * barrier.size
