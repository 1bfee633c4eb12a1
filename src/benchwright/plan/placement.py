"""Which processes a launch consists of, where each runs, and the order of launches."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job, JobBarrier, JobTurn, LaunchEnd
from benchwright.core.machine import Machine
from benchwright.core.run import Plan
from benchwright.core.status import Reason
from benchwright.core.stop_rule import probe_settings
from benchwright.core.stream_dialect import first_installed
from benchwright.options.table import MOST_LAUNCHES, Options
from benchwright.plan.base import JobCommand, Kinds, PlanContext, Planner
from benchwright.plan.file_names import stem
from benchwright.plan.process_slots import ProcessSlot
from benchwright.plan.starts import may_start_ahead, with_shared_starts, with_turns_ahead
from benchwright.plan.turns import barrier_of_turns, refuse_too_few, refuse_turns

# The order in which interleaved benchmarks are launched.
#
# Each block holds one launch of every benchmark, so that a block's launches can be compared as pairs. Over the blocks the
# order is balanced: every benchmark stands equally often in every place and follows every other one equally often (a
# Williams design), so that neither drift of the machine nor the effect of the predecessor favours one of them.
# For two benchmarks that is A B, B A, A B, …; where a verdict is wanted it is random within that, by the run's seed, so that no
# rhythm of the machine can keep step with it.


# Four blocks of two benchmarks: balanced, and a block is as often like the one before it as not. Strict alternation would
# let correlated noise pass for a difference more often (AR .6, 20 pairs: 1.5 % instead of 1 %).
_FOUR_BLOCKS = ((0, 0, 1, 1), (0, 1, 1, 0), (1, 1, 0, 0), (1, 0, 0, 1))


def williams_rows(count: int) -> list[tuple[int, ...]]:
    """Rows of a Williams design for `count` treatments: `count` rows if even, twice as many if odd."""
    if count < 1:
        return []
    zigzag = [0]
    low, high = 1, count - 1
    while len(zigzag) < count:
        zigzag.append(low)
        low += 1
        if len(zigzag) < count:
            zigzag.append(high)
            high -= 1
    rows = [tuple((place + shift) % count for place in zigzag) for shift in range(count)]
    if count % 2:
        rows += [tuple(reversed(row)) for row in rows]
    return rows


def balanced_blocks(count: int, blocks: int, *, start: int = 0) -> list[tuple[int, ...]]:
    """The order within each of `blocks` blocks of `count` benchmarks; `start` rotates the first row."""
    rows = williams_rows(count)
    return [rows[(start + block) % len(rows)] for block in range(blocks)] if rows else []


def random_blocks(count: int, blocks: int, *, seed: int) -> list[tuple[int, ...]]:
    """The same, but random: balanced after every 4 blocks of two benchmarks, or after every Williams design."""
    chance = random.Random(seed)  # noqa: S311
    rows, made = williams_rows(count), list[tuple[int, ...]]()
    while rows and len(made) < blocks:
        if count == 2:
            made += [rows[row] for row in _FOUR_BLOCKS[_below(4, chance)]]
        else:
            made += _shuffled(rows, chance)
    return made[:blocks]


def _shuffled(rows: list[tuple[int, ...]], chance: random.Random) -> list[tuple[int, ...]]:
    left = list(rows)
    return [left.pop(_below(len(left), chance)) for _ in rows]


def _below(count: int, chance: random.Random) -> int:
    """A number below `count`. `random()` is the one method whose numbers no version of Python changes."""
    return int(chance.random() * count)


class LaunchSlot(msgspec.Struct, frozen=True):
    """One launch in the order: which benchmark, and which of its launches."""

    benchmark: int
    launch: int | None
    warmup: bool
    block: int | None
    place: int = 0  # in its block


def make_plan(
    benchmarks: Sequence[Benchmark],
    machine: Machine,
    options: Options,
    kinds: Kinds,
    *,
    folder: str,
    probe_path: str | None,
    usable_cores: Sequence[int],
    not_ready: Mapping[str, str] | None = None,
    count_work: bool = False,
    goes_on: bool = False,
) -> Plan:
    """The jobs of every benchmark in launch order; what this machine cannot run is skipped with a reason.

    `kinds` gives a benchmark's kind. `not_ready`: benchmarks that lack their environment or data, with why. `count_work`:
    scripts being searched for models also count their arithmetic. `goes_on`: others like them were launched before.
    """
    for benchmark in benchmarks:
        _check_cores(benchmark, usable_cores)
    planners = _Planners(
        kinds,
        PlanContext(
            machine=machine,
            options=options,
            folder=folder.rstrip("/"),
            probe_path=probe_path,
            count_work=count_work,
            usable_cores=tuple(usable_cores),
        ),
    )
    skipped = {b.name: why for b in benchmarks if (why := _why_skipped(b, planners)) is not None}
    for name, why_not in (not_ready or {}).items():
        skipped.setdefault(name, (Reason.NOT_READY, why_not))
    runnable = [b for b in benchmarks if b.name not in skipped]
    if options.turns is not None:
        refuse_too_few(runnable, planners.of)
    _check_count(sum(launches_of(b, options) + options.warmup_runs for b in runnable))
    maker = _JobMaker(planners, count=len(runnable))
    launches = [
        maker.jobs(runnable[slot.benchmark], slot, position)
        for position, slot in enumerate(order_of_launches(runnable, options))
    ]
    launches = with_shared_starts(with_turns_ahead(launches, usable_cores), options, goes_on=goes_on)
    notes = {b.name: note for b in runnable if (note := planners.of(b).notes(b))}
    return Plan(
        benchmarks=tuple(benchmarks), launches=tuple(launches), skipped=skipped, up_to=options.up_to, notes=notes
    )


class _Planners:
    """One planner for each kind in the plan, made on first use."""

    def __init__(self, kinds: Kinds, context: PlanContext) -> None:
        self._kinds = kinds
        self._made: dict[str, Planner] = {}
        self.context = context

    def of(self, benchmark: Benchmark) -> Planner:
        made = self._made.get(benchmark.kind)
        if made is None:
            made = self._made[benchmark.kind] = self._kinds(benchmark).planner(self.context)
        return made


def _why_skipped(benchmark: Benchmark, planners: _Planners) -> tuple[Reason, str] | None:
    """The reason and a sentence; None if it can run here."""
    if not benchmark.enabled:
        return Reason.DISABLED, "not enabled"
    if benchmark.fault is not None:
        return Reason.MISCONFIGURED, benchmark.fault
    if benchmark.withheld is not None:
        return Reason.NOT_MEASURABLE, benchmark.withheld
    return planners.of(benchmark).why_skipped(benchmark)


def launches_of(benchmark: Benchmark, options: Options) -> int:
    """How often it is launched: as the user says, else as its target does."""
    repeats = options.repeat > 1 or options.up_to
    return options.repeat if repeats else benchmark.launches


def order_of_launches(benchmarks: Sequence[Benchmark], options: Options) -> list[LaunchSlot]:
    """One benchmark after another, or interleaved in balanced blocks; warm-up launches before the measured ones.

    Each pair is interleaved by itself.
    """
    groups: dict[object, list[int]] = {}
    for number, benchmark in enumerate(benchmarks):
        groups.setdefault(benchmark.pair if options.interleave else number, []).append(number)
    return [slot for group in groups.values() for slot in _order_within(group, benchmarks, options)]


def _order_within(group: Sequence[int], benchmarks: Sequence[Benchmark], options: Options) -> list[LaunchSlot]:
    launches = {number: launches_of(benchmarks[number], options) for number in group}
    repeats = {number: options.repeat > 1 or count > 1 for number, count in launches.items()}
    slots = [LaunchSlot(number, n, True, None) for n in range(options.warmup_runs) for number in group]
    if len(group) < 2:
        number = group[0]
        if options.decision is not None and benchmarks[number].side is not None:
            # The other side cannot be started: whether this one works is all that is left to find out.
            return [LaunchSlot(number, 0, False, 0)]
        return slots + [
            LaunchSlot(number, n if repeats[number] else None, False, None) for n in range(launches[number])
        ]
    most = max(launches.values())
    if options.decision is None:
        rows = balanced_blocks(len(group), most, start=options.seed)
    else:
        rows = random_blocks(len(group), most, seed=options.seed)
    for block, row in enumerate(rows):
        here = [number for number in (group[place] for place in row) if block < launches[number]]
        slots += [
            LaunchSlot(number, block if repeats[number] else None, False, block, place)
            for place, number in enumerate(here)
        ]
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
                f"{benchmark.name} cannot be pinned to core {core}, which this process cannot use",
                where="--cores",
                remedy=f"choose from {usable}",
            )


def _check_count(launches: int) -> None:
    if launches > MOST_LAUNCHES:
        raise InvalidInput(
            f"{launches:,} launches exceed the {MOST_LAUNCHES:,} allowed in a run",
            where="--repeat",
            remedy="use fewer repeats or fewer benchmarks",
        )


class _JobMaker:
    """Makes the jobs of every launch of a plan; `count`: how many benchmarks are launched."""

    def __init__(self, planners: _Planners, *, count: int) -> None:
        self._planners = planners
        self._count = count
        self._context = planners.context

    def jobs(self, benchmark: Benchmark, launch: LaunchSlot, position: int) -> tuple[Job, ...]:
        """The jobs of one launch."""
        slots = self._planners.of(benchmark).slots(benchmark)
        if self._context.options.turns is not None:
            refuse_turns(benchmark, self._planners.of(benchmark), slots)
        return self._ended_together(launch, tuple([self._job(benchmark, launch, position, slot) for slot in slots]))

    def _ended_together(self, launch: LaunchSlot, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
        """If some report nothing, all end soon after the reporting ones were stopped early."""
        reporting = sum(job.reports == "always" for job in jobs)
        if not reporting or all(job.reports != "never" for job in jobs):
            return jobs
        name = stem(jobs[0].benchmark, launch=launch.launch, warmup=launch.warmup)
        ends = (
            LaunchEnd(
                folder=f"{self._context.folder}/.barrier/{name}.end",
                size=reporting,
                place=place,
                reports=job.reports == "always",
                grace_s=self._context.options.stop_grace,
            )
            for place, job in enumerate(jobs)
        )
        return tuple(msgspec.structs.replace(job, launch_end=end) for job, end in zip(jobs, ends, strict=True))

    def _job(self, benchmark: Benchmark, launch: LaunchSlot, position: int, slot: ProcessSlot) -> Job:
        node = slot.node if slot.machines > 1 else None
        name = _job_name(benchmark, launch, slot, node)
        command = self._planners.of(benchmark).command(benchmark, slot, name, launch.launch)
        barrier = self._barrier(benchmark, launch, slot, node)
        folder, options = self._context.folder, self._context.options
        ahead = command.ahead and barrier is None and may_start_ahead(benchmark, options)
        turn = JobTurn(folder=f"{folder}/.barrier/ahead") if ahead else None
        return Job(
            id=name,
            benchmark=benchmark.name,
            argv=command.argv,
            shell=command.shell,
            cwd=command.cwd,
            stream=f"{folder}/{name}.data",
            log=f"{folder}/{name}.log",
            env=command.env,
            recorded=options.keep_env,
            devices=slot.devices,
            cores=command.cores if benchmark.placement.cores is None else benchmark.placement.cores,
            node=slot.node,
            machines=slot.machines,
            reports=slot.reports,
            timeout_s=_timeout_s(benchmark, barrier),
            check_timeout_s=command.check_timeout_s,
            grace_s=options.grace,
            max_memory_bytes=options.max_memory,
            metrics=benchmark.metrics,
            probe=probe_settings(benchmark.stop, benchmark.warmup, benchmark.loop) | command.probe,
            probe_path=self._context.probe_path,
            barrier=barrier,
            turn=turn,
            sample_interval_s=options.sample_interval,
            echo=options.show_output or command.echo,
            discard_log=options.discard_logs,
            launch=launch.launch,
            warmup=launch.warmup,
            block=launch.block,
            position=position,
            path=command.path,
            files=command.files,
            folders=command.folders,
            unrecorded=command.unrecorded,
            fetch=command.fetch,
            apart=command.apart,
            cooldown_s=command.cooldown_s,
            wait_s=command.wait_s,
            printed=command.printed,
            data_file=command.data_file,
            dialect=command.dialect or _dialect_of(command),
            warm=command.warm,
            build=command.build if launch.launch in (None, 0) and not launch.warmup else None,
        )

    def _barrier(
        self, benchmark: Benchmark, launch: LaunchSlot, slot: ProcessSlot, node: str | None
    ) -> JobBarrier | None:
        turn_s, folder = self._context.options.turns, self._context.folder
        if turn_s is not None and launch.block is not None:
            return barrier_of_turns(folder, launch.block, size=self._count, rank=launch.place, turn_s=turn_s)
        if slot.together < 2 or slot.reports != "always":
            return None
        name = stem(benchmark.name, launch=launch.launch, warmup=launch.warmup, node=node)
        return JobBarrier(folder=f"{folder}/.barrier/{name}", size=slot.together, rank=slot.rank)


def _job_name(benchmark: Benchmark, launch: LaunchSlot, slot: ProcessSlot, node: str | None) -> str:
    return stem(
        benchmark.name,
        launch=launch.launch,
        warmup=launch.warmup,
        device=slot.device,
        job=slot.job,
        node=node,
        tag=slot.tag,
    )


def _dialect_of(command: JobCommand) -> str | None:
    """Of a program that was given $DATA_FD, but no dialect."""
    return first_installed() if command.data_file is not None or "DATA_FD" in command.env else None


def _timeout_s(benchmark: Benchmark, barrier: JobBarrier | None) -> float | None:
    """Other benchmarks' turns do not count against its timeout."""
    shared = barrier is not None and barrier.turn_s is not None
    if barrier is None or benchmark.timeout_s is None or not shared:
        return benchmark.timeout_s
    return benchmark.timeout_s * barrier.size
