"""The reporter seam. Entry-point group: `benchwright.reporters`; one contract test that every variant passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from benchwright.core.comparison import Comparison
from benchwright.core.efficiency import Efficiency, Roofline
from benchwright.core.note import Note
from benchwright.core.run import Run
from benchwright.core.score import ScoreComparison, SuiteScore
from benchwright.core.summary import Summary
from benchwright.options.table import Options
from benchwright.report.document import ReportSection, ReportTable
from benchwright.report.score_rule import RuleScore
from benchwright.report.text.metrics import headline_metrics

ENTRY_POINT_GROUP = "benchwright.reporters"
Aggregate = Callable[[str, Sequence[float], int | None], float]  # method, values, workers


class Contribution(msgspec.Struct, frozen=True, kw_only=True):
    """Additions of kinds to the report of a run. Numbers are those of results in the run."""

    title: str = ""  # of its sections, such as Models
    sections: tuple[ReportSection, ...] = ()
    shown: frozenset[int] = frozenset()  # results that these sections show, so that other tables need not
    shown_metrics: frozenset[str] = frozenset()
    headline: Mapping[int, tuple[str, ...]] = {}  # the metrics that matter, where not all do
    details: Mapping[int, tuple[str, ...]] = {}  # what `show` says of a result, a paragraph each
    bodies: Mapping[int, Mapping[str, Any]] = {}  # further keys of a result in run.json
    table: ReportTable | None = None  # the CSV of a run that has nothing else
    page: Callable[[], str] | None = None  # the HTML of such a run, where cards would be too many


def joined(added: Sequence[Contribution]) -> Contribution:
    """Additions of several kinds, as one; only a run of a single kind has a separate CSV."""
    own = [each.table for each in added if each.table is not None]
    pages = [each.page for each in added if each.page is not None]
    return Contribution(
        title=" and ".join(each.title for each in added if each.title),
        sections=tuple(section for each in added for section in each.sections),
        shown=frozenset[int]().union(*(each.shown for each in added)),
        shown_metrics=frozenset[str]().union(*(each.shown_metrics for each in added)),
        headline={number: names for each in added for number, names in each.headline.items()},
        details={number: texts for each in added for number, texts in each.details.items()},
        bodies={number: body for each in added for number, body in each.bodies.items()},
        table=own[0] if len(own) == 1 else None,
        page=pages[0] if len(added) == 1 and pages else None,
    )


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A run, with everything a reporter may want to show of it."""

    run: Run
    summaries: Mapping[str, Sequence[Summary]]  # for each benchmark its metrics over the launches that count
    aggregate: Aggregate
    log_tails: Mapping[str, Sequence[str]] = {}  # the last lines printed by failed jobs
    logs: Mapping[str, Sequence[str]] = {}  # the last lines printed by any job, for reporters that show logs
    remarks: tuple[Note, ...] = ()  # about the run as a whole
    options: Options | None = None  # how the run was made
    commands: Mapping[str, Sequence[str]] = {}  # of each suite's benchmark that of its first process
    efficiency: Mapping[str, Sequence[Efficiency]] = {}  # of each benchmark that tells how much work an item is
    rooflines: tuple[Roofline, ...] = ()
    added: Contribution = Contribution()
    score: SuiteScore | None = None  # of a suite
    by_rule: RuleScore | None = None  # of a suite, if another rule than ours is asked for
    compared: ScoreComparison | None = None  # with the scores of another run
    comparisons: tuple[Comparison, ...] = ()  # between benchmarks of the run
    against: Comparison | None = None  # with another run, metric by metric
    per_device: bool = False  # how the devices compare is asked for
    brief: bool = False  # for run.json, which is written often: kinds need not add what only people and CSV see
    width: int = 80
    workers: int | None = None
    uptime_s: float | None = None

    def headline(self, number: int) -> list[Summary]:
        """The metrics of a result that are shown first; files and folded tables have them all."""
        chosen = self.added.headline.get(number)
        found = self.summaries.get(self.run.results[number].benchmark.name, ())
        return headline_metrics([s for s in found if chosen is None or s.metric in chosen])


class Reporter(Protocol):
    """Turns a run into text. Any run: failed, interrupted, empty, with numbers that are not finite."""

    @property
    def name(self) -> str:
        """Its name for `--format`."""
        ...

    def render(self, report: Report) -> str:
        """The whole text, ending with a newline."""
        ...


@runtime_checkable
class OneRunReporter(Reporter, Protocol):
    """A reporter whose document cannot hold several runs."""

    @property
    def why_one_run(self) -> str:
        """The first half of an error: `a file of the tool holds one run`."""
        ...
