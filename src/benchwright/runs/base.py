"""The interface of kinds for reading and recording a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from benchwright.core.benchmark import Benchmark
from benchwright.plan.base import PlansJobs
from benchwright.record.base import GathersEvents


class RunKind(PlansJobs, GathersEvents, Protocol):
    """A kind, as runs know it."""

    fills_words: bool

    def promises_rate(self, benchmark: Benchmark) -> bool: ...
    def code_files(self, benchmark: Benchmark) -> list[str]: ...
    def known_sums(self, benchmarks: Sequence[Benchmark]) -> dict[str, str]: ...


Kinds = Callable[[Benchmark], RunKind]  # a benchmark's kind
