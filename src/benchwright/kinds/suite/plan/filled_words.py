"""The command-line words of a benchmark, with every placeholder filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

import msgspec

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command
from benchwright.core.errors import UnfilledWord
from benchwright.core.quantities import format_bytes
from benchwright.core.system import Scaling, Sizing, SuitePaths
from benchwright.kinds.suite.dialect import dialects
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.templating.placeholders import Context, PlaceholderError, fill

# Which batch size `auto_batch(default)` stands for.


class BatchSize(msgspec.Struct, frozen=True):
    """`note`: why this size, in one sentence, where the suite does not say."""

    size: int
    note: str | None = None


def choose_batch_size(benchmark: str, default: int, sizing: Sizing, device_bytes: int | None) -> BatchSize:
    """`device_bytes`: the memory of one device, None if it is not known; `sizing.capacity_bytes` goes before it."""
    if sizing.batch_size is not None:
        return BatchSize(max(1, sizing.batch_size), f"batch size {max(1, sizing.batch_size)}, the same for all")
    if sizing.add is not None or sizing.mult is not None:
        changed = int(default * (1.0 if sizing.mult is None else sizing.mult)) + (sizing.add or 0)
        return BatchSize(max(1, changed), f"batch size {max(1, changed)}, changed from {default}")
    if not sizing.optimized and not sizing.auto:
        return BatchSize(max(1, default))
    capacity = sizing.capacity_bytes or device_bytes
    known = sizing.scaling.get(benchmark)
    if known is None:
        why = f"no scaling data for {benchmark}"
        return _default(default, why) if sizing.optimized else BatchSize(1, f"batch size 1: {why}")
    return _optimized(default, known, capacity) if sizing.optimized else _fitted(default, known, sizing, capacity)


def _default(default: int, why: str) -> BatchSize:
    return BatchSize(max(1, default), f"batch size {max(1, default)}, the default: {why}")


def _optimized(default: int, known: Scaling, capacity: int | None) -> BatchSize:
    """The optimum the file states; else the fastest that needs less than `capacity`, of equals the first."""
    if known.optimized is not None:
        return BatchSize(max(1, known.optimized), f"batch size {known.optimized}, the optimized size")
    fitting = [
        (o.perf, o.batch_size)
        for o in known.observations
        if o.perf is not None and o.memory_bytes and (capacity is None or o.memory_bytes < capacity)
    ]
    if not fitting:
        return _default(default, "no optimized size is known")
    best = max(fitting, key=lambda one: one[0])[1]
    return BatchSize(best, f"batch size {best}, the fastest of {len(fitting)} observations")


def _fitted(default: int, known: Scaling, sizing: Sizing, capacity: int | None) -> BatchSize:
    """The size to use, without sizes known not to fit."""
    if capacity is None:
        return _default(default, "the memory of the device is not known")
    points = [(float(o.memory_bytes), float(o.batch_size)) for o in known.observations if o.memory_bytes]
    if len(points) < 2:
        return BatchSize(1, "batch size 1: a fit takes at least two observations with their memory")
    size = rounded(batch_at(capacity, points), multiple=sizing.multiple, power=sizing.power)
    note = f"fitted to {format_bytes(capacity)} from {len(points)} observations"
    largest = int(max(batch for _, batch in points))
    too_large = min((o.batch_size for o in known.observations if o.memory_bytes is None), default=None)
    # Of a device of another capacity, what did not fit says nothing.
    if too_large is not None and sizing.capacity_bytes is None and size >= too_large:
        size = rounded(too_large - 1, multiple=sizing.multiple, power=sizing.power)
        note += f" and below {too_large}, which did not fit"
    if size > largest:
        note += f"; beyond the largest one observed, {largest}: it may not fit"
    return BatchSize(size, f"batch size {size}, {note}")


def batch_at(capacity: float, points: Sequence[tuple[float, float]]) -> float:
    """The batch size at `capacity` on the straight line fitted to (memory, batch size) by least squares.

    All at the same memory: the shortest of the solutions, as numpy.polyfit finds it.
    """
    mean_bytes = fmean(memory for memory, _ in points)
    mean_batch = fmean(batch for _, batch in points)
    spread = sum((memory - mean_bytes) ** 2 for memory, _ in points)
    if spread == 0:
        return mean_batch * (capacity / mean_bytes + 1) / 2
    slope = sum((memory - mean_bytes) * (batch - mean_batch) for memory, batch in points) / spread
    return mean_batch + slope * (capacity - mean_bytes)


def rounded(items: float, *, multiple: int = 1, power: int | None = None) -> int:
    """To the nearest whole number, then down to a multiple, or to a power of `power`; at least 1."""
    whole = int(items)
    if items - whole > 0.5:
        whole += 1
    if whole < 1:
        return 1
    if power is not None and power > 1:
        size = 1
        while size * power <= whole:
            size *= power
        return size
    return max(1, whole // max(1, multiple) * max(1, multiple))


class FilledWords(msgspec.Struct, frozen=True):
    """`args` of the script, or all words of a command, `server` and `ready` of the server if there is one; `env` as the entry gives it."""

    args: tuple[str, ...]
    env: dict[str, str | None]
    server: tuple[str, ...]
    ready: str | None
    launcher_args: tuple[str, ...]
    image: str | None  # of its container, instead of the system's
    batch_size: BatchSize | None
    fill: Callable[[str], str]  # a word that the entry does not hold, such as a benchfile's


def filled_words(benchmark: Benchmark, place: BenchmarkPlace, paths: SuitePaths, facts: MachineFacts) -> FilledWords:
    """UnfilledWord names the benchmark, the word and the remedy where a placeholder cannot be filled."""
    sizer = _Sizer(benchmark.name, paths, facts)
    context = _context(benchmark, place, facts, sizer)
    work = benchmark.workload
    args = work.argv if isinstance(work, Command) else work.args
    serving, launcher = place.folder.serving, place.folder.launcher
    words = _Filling(benchmark, context)
    return FilledWords(
        args=words.all(args),
        env={name: None if value is None else words.one(value) for name, value in benchmark.env.items()},
        server=words.all((serving.script, *serving.args)) if serving is not None else (),
        ready=words.one(serving.ready) if serving is not None and serving.ready is not None else None,
        launcher_args=words.all(launcher.args) if launcher is not None else (),
        image=_image(place.folder, paths, words),
        batch_size=sizer.chosen,
        fill=words.one,
    )


def _image(folder: BenchmarkFolder, paths: SuitePaths, words: _Filling) -> str | None:
    """Of the entry's own container, where the system has an engine to run one."""
    given = folder.config.get("docker_image")
    return words.one(str(given)) if given and paths.system.container is not None else None


def _context(benchmark: Benchmark, place: BenchmarkPlace, facts: MachineFacts, sizer: _Sizer) -> Context:
    """Names for the benchmark's placeholders."""
    names = dict(facts.names)
    for name, folder in place.folders.items():
        names[f"benchwright_{name}"] = folder
    names["benchwright_name"] = benchmark.name
    for dialect in dialects():
        names |= dialect.names(place, benchmark.name)
    names["benchmark_folder"] = place.folder.path
    names["num_machines"] = benchmark.placement.machines
    names["total_gpu_count"] = len(facts.devices) * benchmark.placement.machines
    chosen = 0 if facts.auto_workers else 1

    def auto(*values: object) -> object:
        if len(values) != 2:
            raise ValueError(
                "auto takes two values: the one to use when workers are chosen automatically, and the default"
            )
        return values[chosen]

    def expr(*values: object) -> object:
        if len(values) != 1:
            raise ValueError("expr takes one expression")
        return values[0]

    return Context(names, {"auto": auto, "auto_batch": sizer.choose, "expr": expr})


class _Sizer:
    """Answers `auto_batch`, and remembers what it said."""

    def __init__(self, benchmark: str, paths: SuitePaths, facts: MachineFacts) -> None:
        self._benchmark = benchmark
        self._sizing = paths.sizing
        self._device_bytes = facts.capacity_bytes
        self.chosen: BatchSize | None = None

    def choose(self, *values: object) -> int:
        if len(values) != 1 or not isinstance(values[0], (int, float)):
            raise ValueError("auto_batch takes one number, the default batch size")
        self.chosen = choose_batch_size(self._benchmark, int(values[0]), self._sizing, self._device_bytes)
        return self.chosen.size


class _Filling:
    def __init__(self, benchmark: Benchmark, context: Context) -> None:
        self._benchmark = benchmark
        self._context = context

    def all(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple([self.one(word) for word in words])

    def one(self, word: str) -> str:
        try:
            return fill(word, self._context)
        except PlaceholderError as error:
            raise UnfilledWord(
                f"{self._benchmark.name}: {error.what}",
                entry=self._benchmark.name,
                word=word,
                where=self._benchmark.source,
                remedy=error.remedy,
            ) from None
