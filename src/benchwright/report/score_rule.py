"""The score seam: a suite's score by another rule than ours. Entry-point group: `benchwright.scores`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from benchwright.core.registry import Registry
from benchwright.core.run import Run
from benchwright.report.document import ReportTable

ENTRY_POINT_GROUP = "benchwright.scores"


class RuleScore(msgspec.Struct, frozen=True, kw_only=True):
    """A run's score by a rule, ready to be shown."""

    rule: str  # what `--score` calls it, and its key in JSON
    title: str
    words: tuple[str, ...]  # the score itself, and what belongs beside it
    table: ReportTable  # a row for each benchmark
    about: tuple[str, ...] = ()  # remarks, such as which benchmarks are left out and why
    body: Mapping[str, Any] = {}  # for JSON


class ScoreRule(Protocol):
    """Makes one figure of a run, and one of each of its benchmarks. Any run: failed, empty, with rates that are not finite.

    A launch whose facts have a key of the rule's name is one of a suite, whatever kind of benchmark it is: so importers mark
    what they read.
    """

    def score(self, run: Run, *, weights: Mapping[str, float] | None = None, price: float | None = None) -> RuleScore:
        """`weights`, by name, are used instead of the run's own; a benchmark that has one but was not run is missing.
        `price`: of the machine."""
        ...

    def pooled(self, runs: Sequence[Run]) -> Run | None:
        """Several runs as one, if the rule scores them together; None if each has a separate score."""
        ...


SCORES: Registry[Callable[[], ScoreRule]] = Registry(ENTRY_POINT_GROUP, "scoring rule")
