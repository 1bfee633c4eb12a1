"""Benchmarks that are called alike, told apart."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import Benchmark


def with_unique_names(benchmarks: Sequence[Benchmark]) -> list[Benchmark]:
    """The same, a second `train.py` called `train.py-2`, so that commands given together can be told apart."""
    taken: set[str] = set()
    unique = []
    for benchmark in benchmarks:
        name, number = benchmark.name, 2
        while name in taken:
            name, number = f"{benchmark.name}-{number}", number + 1
        taken.add(name)
        unique.append(msgspec.structs.replace(benchmark, name=name) if name != benchmark.name else benchmark)
    return unique
