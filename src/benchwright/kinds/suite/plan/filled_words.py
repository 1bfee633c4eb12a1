"""The command-line words of a benchmark, with every placeholder filled."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command
from benchwright.core.errors import UnfilledWord
from benchwright.core.node.system import SuitePaths
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.plan.sizing import BatchSize, choose_batch_size
from benchwright.kinds.suite.words.placeholders import Context, PlaceholderError, fill


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
    """What the benchmark's placeholders may name."""
    names = dict(facts.names)
    for name, folder in place.folders.items():
        names[f"milabench_{name}"] = names[f"benchwright_{name}"] = folder
    names["milabench_name"] = names["benchwright_name"] = benchmark.name
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
