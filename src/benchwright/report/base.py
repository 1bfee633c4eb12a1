"""The reporter seam. Entry-point group: `benchwright.reporters`; one contract test that every variant passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from benchwright.core.note import Note
from benchwright.core.results.efficiency import Efficiency
from benchwright.core.results.score import MilabenchScore, ScoreComparison, SuiteScore
from benchwright.core.results.summary import Summary
from benchwright.core.run import Run
from benchwright.core.settings import RunSettings

ENTRY_POINT_GROUP = "benchwright.reporters"
Aggregate = Callable[[str, Sequence[float], int | None], float]  # method, values, workers


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run, with everything a reporter may want to show of it."""

    run: Run
    summaries: Mapping[str, Sequence[Summary]]  # for each benchmark its metrics over the launches that count
    aggregate: Aggregate
    log_tails: Mapping[str, Sequence[str]] = {}  # the last lines printed by failed jobs
    logs: Mapping[str, Sequence[str]] = {}  # the last lines printed by any job, for reporters that show logs
    remarks: tuple[Note, ...] = ()  # about the run as a whole
    settings: RunSettings | None = None  # how the run was made
    commands: Mapping[str, Sequence[str]] = {}  # of each suite's benchmark that of its first process
    efficiency: Mapping[str, Sequence[Efficiency]] = {}  # of each benchmark that tells how much work an item is
    score: SuiteScore | None = None  # of a suite
    milabench: MilabenchScore | None = None  # of a suite, if milabench's figures are asked for
    compared: ScoreComparison | None = None  # with the scores of another run
    per_device: bool = False  # how the devices compare is asked for
    width: int = 80
    workers: int | None = None
    uptime_s: float | None = None


class Reporter(Protocol):
    """Turns a run into text. Any run: failed, interrupted, empty, with numbers that are not finite."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        ...

    def render(self, report: Report) -> str:
        """The whole text, ending with a newline."""
        ...
