"""One launch of one commit, as an ordinary run."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchwright.analysis.comparison.disturbed import value_and_disturbance
from benchwright.app.after_run import report_of
from benchwright.app.regressions.sides import variation_of_build
from benchwright.app.run import RunOrder, run
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.inputs.specification import TREATMENT
from benchwright.core.metric import Direction
from benchwright.core.run import Result, Run, why
from benchwright.executors.observer import Observer
from benchwright.regress.belonging import kept_words
from benchwright.regress.builds import BuildRecipe, build
from benchwright.regress.repository import Commit, SourceRepository
from benchwright.regress.variation import Variation
from benchwright.runs.base_folder import BaseFolder


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch measured."""

    metric: str
    unit: str | None
    direction: Direction
    value: float
    run: str
    disturbed: str | None


class NotLaunched(CannotMeasure):
    """The launch failed, or did not report the metric. `may_pass`: it is worth another try."""

    def __init__(self, text: str, *, may_pass: bool = False) -> None:
        super().__init__(text)
        self.may_pass = may_pass


class _Quiet(Observer):
    """Tells of builds and of each trouble once; the launches are told by the bisection."""

    def __init__(self, observer: Observer) -> None:
        self.on_step = observer.on_step  # type: ignore[method-assign]
        self.on_step_done = observer.on_step_done  # type: ignore[method-assign]


def measure_commit(
    order: RunOrder,
    repository: SourceRepository,
    commit: Commit,
    recipe: BuildRecipe,
    folder: Path,
    metric: str | None,
    observer: Observer,
) -> Launched:
    """Builds the commit, unless it is built, and launches the target once. RevisionNotBuilt or NotLaunched if that fails."""
    quiet = _Quiet(observer)
    variation = _variation(order, repository, commit, recipe, quiet)
    observer.on_step(commit.short, "measuring")
    one = replace(
        order,
        options=replace(order.options, repeat=1, enough=None, decision=None, no_store=True),
        base=BaseFolder(folder),  # its runs are of no use by themselves, so no list shows them
        name=f"{commit.short}.{{time}}",
        variations=(variation,),
    )
    try:
        made = run(one, quiet)
    except InvalidInput as error:
        # Of an older commit the target may not be there, or not readable.
        raise NotLaunched(f"{commit.short}: {error.on_one_line}") from error
    finally:
        observer.on_step_done(commit.short)
    try:
        return _launched(made, _only(made), metric)
    except NotLaunched as error:
        raise NotLaunched(f"{commit.short}: {error}", may_pass=error.may_pass) from error.__cause__


def _variation(
    order: RunOrder, repository: SourceRepository, commit: Commit, recipe: BuildRecipe, observer: Observer
) -> Variation:
    """The commit, built; NotLaunched if the target would be taken from elsewhere."""
    built = build(repository, commit, recipe, order.base.revisions, observer)
    made = variation_of_build(TREATMENT, commit.short, repository, commit, built)
    try:
        return replace(made, kept=kept_words(order.options, made, repository))
    except InvalidInput as error:
        said = InvalidInput(error.what, where=commit.short, remedy=error.remedy)
        raise NotLaunched(said.on_one_line) from said


def _only(made: Run) -> Result:
    measured = [result for result in made.results if not result.benchmark.withheld]
    if len(measured) != 1:
        names = ", ".join(result.benchmark.name for result in measured[:6])
        raise InvalidInput(
            f"the target has {len(measured)} benchmarks ({names})",
            remedy="name one of them: --select, --task or a path",
        )
    return measured[0]


def _launched(made: Run, result: Result, metric: str | None) -> Launched:
    if not result.counted:
        raise NotLaunched(f"its launch failed: {why(result)}", may_pass=True)
    launch = result.counted[0]
    if metric is None:
        shown = report_of(made).headline(made.results.index(result))
        if not shown:
            raise NotLaunched("its launch reported no metric")
        metric = shown[0].metric
    found = launch.measurement(metric)
    if found is None or not (found.samples or found.value is not None):
        known = ", ".join(dict.fromkeys(m.metric for m in launch.measurements if m.samples))
        raise NotLaunched(f"its launch reported no {metric} (but {known})")
    value, disturbed = value_and_disturbance(launch, found, made.workers)
    return Launched(
        metric=metric,
        unit=found.unit,
        direction=found.direction,
        value=value,
        run=made.id,
        disturbed=disturbed,
    )
