"""Bisection: which commit between a good and a bad one changed a metric, measured a launch at a time.

The state is a file, written after every launch, in the folder that also has the runs: a bisection that was stopped goes on from there.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchwright.analysis.bisection import Bisection
from benchwright.analysis.comparison.disturbances import value_and_disturbance
from benchwright.analysis.reference_drift import EVERY, without_drift
from benchwright.analysis.statistics.ratio_tests import unpaired_ratio
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.core.metric import Direction
from benchwright.core.revision import TREATMENT
from benchwright.core.run import Result, Run, why
from benchwright.core.secrets import redact_words
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.summary import Interval
from benchwright.core.whole_file import write_own
from benchwright.executors.observer import Observer
from benchwright.regress.builder import build
from benchwright.regress.builds import BuildRecipe, RevisionNotBuilt
from benchwright.regress.repository import Commit, SourceRepository, open_repository
from benchwright.regress.revision_paths import in_worktree, kept_words, refuse_shared_package
from benchwright.regress.sides import variation_of_build
from benchwright.report.text.metrics import metric_name
from benchwright.results.after_run import report_of
from benchwright.runner.run import RunOrder, run
from benchwright.runner.variation import Variation
from benchwright.runs.base_folder import BaseFolder

# One launch of one commit, as an ordinary run.


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """Measurement of a launch."""

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
    """Reports builds, and each trouble once; the bisection reports the launches."""

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
        fault = InvalidInput(error.what, where=commit.short, remedy=error.remedy)
        raise NotLaunched(fault.on_one_line) from fault


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


STATE = "bisection.json"
FOLDER = "bisections"
_TRIES = 2  # of a commit whose launches fail
_CONFIDENCE = 0.95
_FEWEST_OF_ENDS = 6  # launches of each before they can be called the same


class BisectOrder(msgspec.Struct, frozen=True, kw_only=True):
    """`order`: the target. `metric` None: what the target is about. `wanted`: worse, better or either."""

    order: RunOrder
    good: str
    bad: str
    repository: str | None = None  # a folder in it; None: where the user is
    recipe: BuildRecipe = BuildRecipe()
    metric: str | None = None
    wanted: str = "worse"
    posterior: float = 0.95
    least: float = 0.01  # a smaller change between the good and the bad commit is none
    budget_s: float | None = None
    most_launches: int = 200
    resume: bool = False
    words: tuple[str, ...] = ()  # the command line, for those who resume it


class CommitLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch. `place`: of its commit, from 0, the good one."""

    place: int
    value: float
    run: str
    disturbed: str | None = None  # why it is less to be trusted


class BisectState(msgspec.Struct, frozen=True, kw_only=True):
    """bisection.json."""

    format: str = "benchwright-bisection"
    version: int = 1
    key: str
    commits: tuple[Commit, ...]
    metric: str | None = None
    unit: str | None = None
    direction: Direction = Direction.NEITHER
    launches: tuple[CommitLaunch, ...] = ()
    skipped: dict[int, str] = {}  # place → why
    failures: dict[int, int] = {}  # place → launches that failed
    newest: tuple[int, str] | None = None  # place, and what the last step did there if it measured nothing
    seconds: float = 0.0
    words: tuple[str, ...] = ()  # the command line, without secrets
    folder: str = ""  # it was begun in


class BisectOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`found`: a commit, or a range that cannot be divided further, reached the posterior. `ratio`: after ÷ before."""

    state: BisectState
    posterior: tuple[float, ...]  # by place
    unchanged: float
    suspects: tuple[int, ...]  # places; one, if nothing between was skipped
    chance: float  # that it was one of them
    found: bool
    ratio: float | None = None
    interval: Interval | None = None
    why_not: str = ""  # what ended it, if nothing was found

    @property
    def best(self) -> int:
        return max(self.suspects, key=lambda place: self.posterior[place])


class BisectObserver(Observer):
    """Also notified of every step."""

    def on_begun(self, state: BisectState) -> None:
        """The commits are known."""

    def on_narrowed(self, state: BisectState, found: BisectOutcome) -> None:
        """A commit was measured or skipped."""


def bisect(order: BisectOrder, observer: BisectObserver | None = None) -> BisectOutcome:
    """Measures until a commit is known well enough, or the limits are reached; Interrupted if asked to stop."""
    work = Bisecting(order, observer or BisectObserver())
    try:
        return work.run()
    except (KeyboardInterrupt, Interrupted):
        raise Interrupted(f"stopped after {len(work.state.launches)} launches; to go on, add --resume") from None


class Bisecting:
    """One bisection. Constructing it reads the repository and, to resume, the state."""

    def __init__(self, order: BisectOrder, observer: BisectObserver) -> None:
        where = "--repo-dir" if order.repository else None
        self.observer = observer
        self.repository = open_repository(order.repository or os.getcwd(), where)
        self.order = order = replace(order, order=in_worktree(self.repository.root, order.order))
        if order.recipe.command is None:
            refuse_shared_package(self.repository, order.order.options.python)
        commits = commits_between(self.repository, order.good, order.bad)
        key = _key(order, self.repository, commits)
        self.folder = order.order.base.path / FOLDER / key
        self.state = BisectState(key=key, commits=commits, words=redact_words(order.words), folder=os.getcwd())
        if order.resume:
            self.state = _read(self.folder, self.state)
        self._began = time.monotonic() - self.state.seconds

    def run(self) -> BisectOutcome:
        bisection = self._bisection()
        self.observer.on_begun(self.state)
        while (place := self._next(bisection)) is not None and self._over() is None:
            self._step(place)
            bisection = self._bisection()
            self.observer.on_narrowed(self.state, self._outcome(bisection))
        return self._outcome(bisection)

    def _next(self, bisection: Bisection) -> int | None:
        """The place to measure. While it seems that nothing changed, an end: those would show a change first."""
        place = bisection.next_place()
        if place is None or self._is_unchanged():
            return None
        ends = (0, len(self.state.commits) - 1)
        if bisection.unchanged <= 0.5:
            # Now and then the good one in between: its launches show whether the machine has become slower.
            return place if 0 in [x.place for x in self.state.launches[-EVERY:]] else 0
        return min(ends, key=lambda end: sum(launch.place == end for launch in self.state.launches))

    def _is_unchanged(self) -> bool:
        """Whether the good and the bad commit are known to be the same."""
        last = len(self.state.commits) - 1
        ends = [x for x in deciding(self.state.launches) if x.place in (0, last)]
        _, interval = _size(ends, (last,))
        counts = [sum(x.place == end for x in ends) for end in (0, last)]
        if interval is None or min(counts) < _FEWEST_OF_ENDS:
            return False
        return interval.low > 1 - self.order.least and interval.high < 1 + self.order.least

    def _over(self) -> str | None:
        """Which limit is reached."""
        if len(self.state.launches) >= self.order.most_launches:
            return f"{self.order.most_launches} launches were not enough; raise --most-launches and add --resume"
        if self.order.budget_s is not None and time.monotonic() - self._began >= self.order.budget_s:
            return "the budget is spent; raise --budget and add --resume"
        return None

    def _bisection(self) -> Bisection:
        """With all that is known."""
        state = self.state
        made = Bisection(len(state.commits), rises=_rises(state, self.order.wanted), enough=self.order.posterior)
        for place in state.skipped:
            made.skip(place)
        launches = deciding(state.launches)
        places = [launch.place for launch in launches]
        for place, value in zip(places, without_drift(places, [math.log(x.value) for x in launches]), strict=True):
            made.observe(place, value)
        return made

    def _step(self, place: int) -> None:
        """Builds and measures one commit once; a commit that cannot be is skipped."""
        state, commit = self.state, self.state.commits[place]
        try:
            found = measure_commit(
                self.order.order, self.repository, commit, self.order.recipe, self.folder,
                state.metric or self.order.metric, self.observer,
            )  # fmt: skip
            self.state = self._with(place, found)
        except RevisionNotBuilt as error:
            self.state = self._without(place, error.what, error)
        except NotLaunched as error:
            failed = state.failures.get(place, 0) + 1
            if failed < _TRIES and error.may_pass:
                failures = state.failures | {place: failed}
                self.state = replace(state, failures=failures, newest=(place, "failed"))
            else:
                self.state = self._without(place, str(error), error)
        self._save()

    def _with(self, place: int, found: Launched) -> BisectState:
        state = self.state
        if not found.value > 0 or not math.isfinite(found.value):
            what = f"{found.metric} of {state.commits[place].short} is {found.value:g}"
            raise CannotMeasure(f"{what}: only positive numbers can be bisected")
        launch = CommitLaunch(place=place, value=found.value, run=found.run, disturbed=found.disturbed)
        return replace(
            state,
            metric=found.metric,
            unit=found.unit,
            direction=found.direction,
            launches=(*state.launches, launch),
            newest=None,
        )

    def _without(self, place: int, why: str, error: CannotMeasure) -> BisectState:
        if place in (0, len(self.state.commits) - 1):  # there is nothing to compare with
            raise error.__cause__ if isinstance(error.__cause__, InvalidInput) else error
        return replace(self.state, skipped=self.state.skipped | {place: why}, newest=(place, "skipped"))

    def _save(self) -> None:
        self.state = replace(self.state, seconds=round(time.monotonic() - self._began, 3))
        self.folder.mkdir(parents=True, exist_ok=True)
        write_own(self.folder / STATE, msgspec.json.format(msgspec.json.encode(self.state), indent=1))

    def _outcome(self, bisection: Bisection) -> BisectOutcome:
        posterior = tuple(bisection.posterior())
        suspects = tuple(bisection.suspects)
        chance = math.fsum(posterior[place] for place in suspects)
        found = chance >= self.order.posterior
        ratio, interval = _size(deciding(self.state.launches), suspects)
        return BisectOutcome(
            state=self.state,
            posterior=posterior,
            unchanged=bisection.unchanged,
            suspects=suspects,
            chance=chance,
            found=found,
            ratio=ratio,
            interval=interval,
            why_not="" if found else self._why_not(bisection),
        )

    def _why_not(self, bisection: Bisection) -> str:
        if bisection.unchanged >= self.order.posterior or self._is_unchanged():
            got = "different" if self.order.wanted == "either" else self.order.wanted
            return f"no commit made {metric_name(self.state.metric or '', {})} {got}"
        return self._over() or "more launches would not help"


def deciding(launches: Sequence[CommitLaunch]) -> list[CommitLaunch]:
    """Without disturbed launches; if most were disturbed, the machine is never quiet, and all count."""
    quiet = [launch for launch in launches if launch.disturbed is None]
    return quiet if 2 * len(quiet) >= len(launches) else list(launches)


def commits_between(repository: SourceRepository, good: str, bad: str) -> tuple[Commit, ...]:
    """The good one, and all after it along first parents up to the bad one. InvalidInput unless one leads to the other."""
    first, last = repository.commit(good, "GOOD"), repository.commit(bad, "BAD")
    if first.hash == last.hash:
        raise InvalidInput(f"GOOD and BAD are the same commit, {first.short}", remedy="name an older good commit")
    if not repository.is_ancestor(first, last):
        if repository.is_ancestor(last, first):
            raise InvalidInput(f"BAD ({last.short}) is older than GOOD ({first.short})", remedy="swap them")
        remedy = "choose a good commit that is in the history of the bad one, such as git merge-base names"
        raise InvalidInput(f"{first.short} (GOOD) does not lead to {last.short} (BAD)", remedy=remedy)
    return (first, *repository.commits(first, last))


def _key(order: BisectOrder, repository: SourceRepository, commits: Sequence[Commit]) -> str:
    """The same for the same question."""
    parts = (
        str(repository.root), commits[0].hash, commits[-1].hash, order.recipe.identity(), order.metric, order.wanted,
        *order.order.options.question, os.getcwd(),
    )  # fmt: skip
    return f"{commits[0].hash[:7]}-{commits[-1].hash[:7]}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:8]}"


def _read(folder: Path, new: BisectState) -> BisectState:
    try:
        known = read_stored_json(folder / STATE, BisectState)
    except FileNotFoundError:
        remedy = "leave --resume out to start it"
        raise InvalidInput("this bisection was not begun yet", where="--resume", remedy=remedy) from None
    except (OSError, Unreadable) as error:
        raise InvalidInput(str(error), where=str(folder / STATE), remedy="start again without --resume") from None
    if [c.hash for c in known.commits] != [c.hash for c in new.commits]:
        raise InvalidInput("the history has changed since", where="--resume", remedy="start again without --resume")
    return known


def _rises(state: BisectState, wanted: str) -> bool | None:
    """Whether the metric is expected to have gone up."""
    if state.direction is Direction.NEITHER or wanted == "either":
        return None
    return (state.direction is Direction.LOWER) == (wanted == "worse")


def _size(launches: Sequence[CommitLaunch], suspects: Sequence[int]) -> tuple[float | None, Interval | None]:
    """After ÷ before, of the launches of commits that are certainly one or the other if the suspects are right."""
    before = [launch.value for launch in launches if launch.place < suspects[0]]
    after = [launch.value for launch in launches if launch.place >= suspects[-1]]
    if len(before) < 2 or len(after) < 2:
        return None, None
    found = unpaired_ratio(before, after, _CONFIDENCE)
    return found.ratio, found.interval


def runners_up(outcome: BisectOutcome, most: int = 3, least: float = 0.005) -> Iterator[int]:
    """The most likely places beside the suspects."""
    others = sorted(set(range(1, len(outcome.posterior))) - set(outcome.suspects), key=lambda p: -outcome.posterior[p])
    yield from (place for place in others[:most] if outcome.posterior[place] >= least)


# The newest bisection that was begun in a folder, to go on with it without repeating its command line.


_WHERE = "--resume"


def words_to_resume(base: BaseFolder, folder: str, more: Sequence[str]) -> list[str]:
    """The command line of the newest bisection that was begun in `folder`, with `more` options; InvalidInput if there is none."""
    files = sorted((base.path / FOLDER).glob(f"*/{STATE}"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    states = []
    for file in files:
        try:
            states.append(read_stored_json(file, BisectState))
        except (OSError, Unreadable):
            continue  # resuming that one by its command line says what is wrong with it
    state = next((state for state in states if state.folder == folder), None)
    if state is None:
        other = next((state.folder for state in states if state.folder), None)
        remedy = f"the newest was begun in {other}" if other else "begin one: benchwright bisect GOOD BAD TARGET"
        raise InvalidInput("no bisection was begun in this folder", where=_WHERE, remedy=remedy)
    if redact_words(state.words) != state.words or not state.words:
        remedy = "repeat its whole command line, and add --resume"
        raise InvalidInput(
            "the newest bisection was begun with a secret, which is not kept", where=_WHERE, remedy=remedy
        )
    at = state.words.index("--") if "--" in state.words else len(state.words)
    return [*(word for word in state.words[:at] if word != _WHERE), *more, *state.words[at:]]
