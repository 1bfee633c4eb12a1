"""A kind of target: how it is read, planned, recorded and reported. Entry-point group: `benchwright.kinds`; one contract test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.core.job import Job
from benchwright.executors.observer import Observer
from benchwright.options.table import Options
from benchwright.plan.base import PlainPlanner, PlanContext, Planner
from benchwright.record.base import Gatherer, PlainGatherer
from benchwright.record.stream_file import Event
from benchwright.report.base import Contribution, Report

ENTRY_POINT_GROUP = "benchwright.kinds"
_MOST_TOLD = 5


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """A resolved request: frozen benchmarks, how to run them, and the run's name."""

    benchmarks: tuple[Benchmark, ...]
    options: Options
    name: str


class Kind(Protocol):
    """One sort of target. `name`, `recognises` and `read` are needed; the other methods have the defaults of a plain command.

    Subclass it: `class MyKind(Kind)`. Nothing outside a kind asks what its benchmarks are made of.
    """

    name: str  # what `--format` calls it, and `Benchmark.kind` holds
    has_score: bool = False  # whether the rates of its benchmarks make a score, which reports show
    probe_packages: tuple[str, ...] = ("benchprobe",)  # what its programs can import without installing it
    takes_arguments: bool = False  # whether its programs get the words after `--`, and those of `--script-args`
    starts_what_it_measures: bool = (
        True  # else variables, packages, programs and commits of an A/B would change nothing
    )
    fills_words: bool = False  # whether its command lines are known only once they are planned

    def recognises(self, target: str) -> bool:
        """Whether `target` is of this kind, judged by its content where possible; never raises."""
        ...

    def file_in(self, folder: str) -> str | None:
        """The target of this kind that `folder` stands for, if it does; InvalidInput if that is not clear."""
        return None

    def read(self, target: str, options: Options) -> list[Benchmark]:
        """The benchmarks in `target`, in its order; InvalidInput says where it is wrong and what to do.

        Reading starts nothing and writes nothing.
        """
        ...

    # -- variations of a benchmark, for an A/B; InvalidInput if it cannot be varied like that ------------------------

    def with_arguments(self, benchmark: Benchmark, words: tuple[str, ...]) -> Benchmark:
        """The same benchmark with more arguments for its program."""
        work = benchmark.workload.with_arguments(words)
        if work is None:
            raise InvalidInput(f"{benchmark.name} takes no arguments", where="args", remedy="compare it in another way")
        return msgspec.structs.replace(benchmark, workload=work)

    def with_programs(self, benchmark: Benchmark, programs: Mapping[str, str]) -> Benchmark:
        """The same benchmark of another `program`; for scripts and models, with another interpreter. Others have other names."""
        work = benchmark.workload.with_program(programs["program"])
        if work is None:
            what = f"{benchmark.name} has no program that could be replaced"
            raise InvalidInput(what, where="bin", remedy="leave --shell out, or compare two commands with cmd:")
        return msgspec.structs.replace(benchmark, workload=work)

    def on_side(self, benchmark: Benchmark, side: str) -> Benchmark:
        """The benchmark for one side of an A/B, with whatever keeps the two sides apart."""
        return benchmark

    def profiled(self, benchmark: Benchmark, folder: str) -> Benchmark | None:
        """The same benchmark for launches that time its operators (`op.time`) instead of the whole; None: it has none to time.

        A Python program writes a profile of its functions into `folder` instead, for each launch.
        """
        return None

    # -- before a run ---------------------------------------------------------------------------------------------

    def option_sorts(self, benchmark: Benchmark) -> tuple[str, ...]:
        """The sorts of target, of those in the table of options, whose options it takes: "suite", "script", "models"…"""
        return (self.name,)

    def alternates(self, benchmark: Benchmark) -> bool:
        """Whether the launches of a run with this benchmark alternate, unless the user says otherwise."""
        return False

    def ends_with_verdict(self, benchmark: Benchmark) -> bool:
        """Whether a run in which it alternated with others of the kind ends with a comparison of them."""
        return False

    def completed(self, options: Options, benchmarks: Sequence[Benchmark]) -> Options:
        """`options` with what a run of `benchmarks`, all of this kind, needs."""
        return options

    def not_ready(self, benchmarks: Sequence[Benchmark], options: Options) -> dict[str, str]:
        """For benchmarks, all of this kind, that lack something before they can run: why, and the remedy."""
        return {}

    def refused(self, benchmarks: Sequence[Benchmark]) -> dict[str, str]:
        """Why benchmarks cannot be made ready by `set_up`, and the remedy, as far as known without fetching anything."""
        return {}

    def set_up(self, benchmarks: Sequence[Benchmark], options: Options, observer: Observer) -> dict[str, str] | None:
        """Does the next thing that `not_ready` says is missing: called again, after all was read anew, until that is None.

        Returns those for which it failed, with the reason; None if nothing was missing. Raises Interrupted if asked to stop.
        """
        return None

    def refusal(self, benchmarks: Sequence[Benchmark], options: Options) -> BenchwrightError:
        """The error to raise if none of `benchmarks` is ready, and there is nothing else to run."""
        lacking = self.not_ready(benchmarks, options)
        return CannotMeasure(nothing_ready([f"{name}: {why}" for name, why in lacking.items()]))

    def packages_for(self, benchmarks: Sequence[Benchmark]) -> tuple[str, ...]:
        """The `probe_packages` that programs of `benchmarks` may import; they are watched during the run."""
        return self.probe_packages

    def warnings(self, benchmarks: Sequence[Benchmark], options: Options) -> list[str]:
        """Warnings for readers of the results about how the benchmarks were prepared."""
        return []

    def next_steps(self, benchmark: Benchmark, options: Options) -> list[str]:
        """Work of a run after the jobs that `plan` can show, one line each."""
        return []

    def planner(self, context: PlanContext) -> Planner:
        """The planner that turns benchmarks of this kind into jobs, for one plan."""
        return PlainPlanner(context)

    # -- after a launch -------------------------------------------------------------------------------------------

    def examined(self, benchmark: Benchmark, job: Job) -> list[Event]:
        """Events to add to the stream of a job that ended well, from the files it left. Asked once, before it is recorded."""
        return []

    def gatherer(self, benchmark: Benchmark) -> Gatherer:
        """Reads what only this kind understands from the events of a launch."""
        return PlainGatherer()

    def promises_rate(self, benchmark: Benchmark) -> bool:
        """Whether the benchmark has failed if it ends without a rate."""
        return False

    def report(self, report: Report) -> Contribution:
        """Additions to the report of a run that has benchmarks of this kind.

        `report` is of the same run, without the additions of kinds.
        """
        return Contribution()

    def code_files(self, benchmark: Benchmark) -> list[str]:
        """Files that its numbers depend on, beside those its command line names."""
        return []

    def known_sums(self, benchmarks: Sequence[Benchmark]) -> dict[str, str]:
        """Checksums of files that were verified when the run was prepared, by path: they need not be read again."""
        return {}


def nothing_ready(reasons: Sequence[str]) -> str:
    """The message of a run in which nothing can be run yet; of many reasons, the first."""
    more = f"; and {len(reasons) - _MOST_TOLD} more" if len(reasons) > _MOST_TOLD else ""
    return "nothing can be run yet: " + "; ".join(reasons[:_MOST_TOLD]) + more
