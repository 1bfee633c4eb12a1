"""Pull, build, measure, record, wait: the loop of a watch.

Whatever takes time or touches the machine is handed in as `WatchWork`, so that tests can drive the loop with
made-up measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime

from benchwright.core.errors import BenchwrightError, CannotMeasure, Interrupted, InvalidInput, UnknownMetric
from benchwright.regress.builds import BuiltRevision, RevisionNotBuilt
from benchwright.regress.repository import Commit
from benchwright.regress.watch.clock import at_intervals
from benchwright.regress.watch.commits import NewCommits, new_commits, recorded_commit
from benchwright.regress.watch.control import Control, controls
from benchwright.regress.watch.examination import Examined, Measured, examine
from benchwright.regress.watch.records import (
    FAILURES,
    CommitOutcome,
    CommitRecord,
    EarlierCall,
    EffectKey,
    RunMade,
    RunType,
    calls_against,
    time_of,
)
from benchwright.regress.watch.state import CommitFile, Journal
from benchwright.regress.watch.work import (
    BuiltCommit,
    Pulled,
    WatchClock,
    WatchedRepository,
    WatchObserver,
    WatchPlace,
    WatchPlan,
    WatchTrial,
    WatchWork,
)


class WatchLoop:
    """One watch. Before each pull, build and run of a commit it looks whether it was asked to stop."""

    def __init__(
        self,
        repository: WatchedRepository,
        plan: WatchPlan,
        work: WatchWork,
        *,
        commit_file: CommitFile,
        journal: Journal,
        clock: WatchClock,
        observer: WatchObserver,
    ) -> None:
        self._repository = repository
        self._plan = plan
        self._work = work
        self._commit_file = commit_file
        self._journal = journal
        self._clock = clock
        self._observer = observer
        self._records = journal.read()
        self._tried: dict[str, int] = {}  # how often it came back to a commit
        self._unusable: set[tuple[str, str]] = set()  # controls at places
        self._outcomes: list[CommitOutcome] = []
        self._pulled: Pulled | None = None
        self._last: Commit | None = None
        self._is_up_to_date = False

    def run(self) -> int:
        """Until nothing is new; with an interval, until it is asked to stop. Returns the exit code."""
        codes = [0]
        with _BuildAhead(self._work) as ahead:
            at_intervals(
                lambda: codes.append(self._pass(ahead if self._plan.overlap else None)),
                self._clock,
                self._plan.interval_s,
                lambda left: self._observer.on_waiting(left, nothing_new=self._is_up_to_date),
            )
        return self._exit_code() or codes[-1]

    def pending(self) -> NewCommits:
        """Pulls, and lists the commits to measure."""
        pulled = self._work.pull()
        if self._pulled is None:  # only now is every commit here that the file may name
            self._last = self._recorded()
        self._pulled = pulled
        self._records = self._journal.read()  # somebody may have marked a call meanwhile
        found = new_commits(self._repository, self._last, pulled.first, pulled.tip, self._plan.step)
        for note in found.notes:
            self._observer.on_note(note)
        return found

    def control_of(self, commit: Commit) -> Control | None:
        """The control to compare it with."""
        return next(self._controls(commit, WatchPlace()))

    def _pass(self, ahead: _BuildAhead | None) -> int:
        """Measures the commits of one pull, then earlier unmeasured ones; with an interval only one commit of these. Returns an
        exit code."""
        try:
            self._is_up_to_date = False
            new = self.pending().commits
            waiting = self.unmeasured()
            self._is_up_to_date = not new
            self._observer.on_commits(new)
            for number, commit in enumerate(new):
                following = new[number + 1] if number + 1 < len(new) else None
                if self._clock.is_stopping() or not self._finished(commit, ahead, following):
                    return 0
                if self._plan.interval_s is not None:
                    return 0
            self._come_back(waiting)
        except Interrupted:
            raise
        except BenchwrightError as error:
            if isinstance(error, InvalidInput) and not self._outcomes:
                raise  # the user's options: they would be wrong the next time too
            again = "" if self._plan.interval_s is None else "; trying again after the interval"
            self._observer.on_trouble(f"{error}{again}")
            return error.exit_code
        return 0

    def _come_back(self, waiting: Sequence[Commit]) -> None:
        """To commits that could not be measured: in an earlier pass (`waiting`), or in this one before another could be. What is
        the only one is left for the next pass: trying at once what just failed helps nobody."""
        measured = [n for n, record in enumerate(self._records) if record.outcome is not CommitOutcome.NOT_MEASURED]
        since = {record.commit: n for n, record in enumerate(self._records)}
        for commit in sorted(self.unmeasured(), key=lambda commit: self._tried.get(commit.hash, 0)):
            if commit not in waiting and not any(n > since[commit.hash] for n in measured):
                continue
            if self._clock.is_stopping():
                return
            self._tried[commit.hash] = self._tried.get(commit.hash, 0) + 1
            self._finished(commit, None, None, is_new=False)
            if self._plan.interval_s is not None:
                return

    def unmeasured(self) -> list[Commit]:
        """Commits of the branch that could not be measured yet, the oldest first."""
        last = {(record.commit, record.place): record for record in self._records}
        hashes = dict.fromkeys(r.commit for r in last.values() if r.outcome is CommitOutcome.NOT_MEASURED)
        commits = [commit for text in hashes if (commit := recorded_commit(self._repository, text)) is not None]
        tip = self._pulled.tip if self._pulled else None
        return [commit for commit in commits if tip is not None and self._repository.is_ancestor(commit, tip)]

    def _finished(
        self, commit: Commit, ahead: _BuildAhead | None, following: Commit | None, *, is_new: bool = True
    ) -> bool:
        """Measures a commit at all places and records it; False: asked to stop before the first. Of one that was recorded before,
        only where it could not be measured; that it still cannot is not said again."""
        before = {r.place: r.outcome for r in self._records if r.commit == commit.hash}
        again = CommitOutcome.NOT_MEASURED in before.values()
        begun = False
        for place in self._work.places():
            if again and before.get(place.name) is not CommitOutcome.NOT_MEASURED:
                continue
            try:
                record = self._at(commit, place, ahead, following, begun=begun)
            except (CannotMeasure, UnknownMetric) as error:
                if isinstance(error, UnknownMetric) and not self._has_compared(error.metric):
                    raise
                record = _record(commit, place, None, Examined(outcome=CommitOutcome.NOT_MEASURED, notes=(str(error),)))
            if record is None:
                return False
            begun = True
            if record.outcome is CommitOutcome.NOT_MEASURED and again:
                continue
            self._journal.add(record)
            self._records.append(record)
            self._observer.on_record(record)
            if record.outcome is not CommitOutcome.NOT_MEASURED:
                self._outcomes.append(record.outcome)
        if is_new:
            self._commit_file.write(commit.hash)
            self._last = commit
        return True

    def _has_compared(self, metric: str) -> bool:
        """Whether other commits have it, so that its name is right."""
        return any(effect.metric == metric for record in self._records for effect in record.effects)

    def _at(
        self, commit: Commit, place: WatchPlace, ahead: _BuildAhead | None, following: Commit | None, *, begun: bool
    ) -> CommitRecord | None:
        """A commit at one place; None: asked to stop before it was measured. `begun`: elsewhere it has been, so it is finished
        here too."""
        try:
            built = ahead.take(commit, place) if ahead else self._work.build(commit, place.platform)
        except RevisionNotBuilt as error:
            notes, log = (error.what, *error.last_lines), None if error.log is None else str(error.log)
            return _record(commit, place, None, Examined(outcome=CommitOutcome.BUILD_FAILED, notes=notes), log)
        treatment = BuiltCommit(commit, built)
        for control in self._controls(commit, place):
            if not begun and self._clock.is_stopping():
                return None
            try:
                against = self._control_side(control, treatment, place)
            except RevisionNotBuilt as error:
                self._rule_out(control, place, error.what)
                continue
            if not begun and self._clock.is_stopping():
                return None
            begun = True
            self._observer.on_commit(commit, control, place)
            if ahead and following:
                ahead.begin(following, place)
            examined = self._examined(treatment, against, place, control)
            if not examined.control_broken:
                return _record(commit, place, control, examined)
            self._rule_out(control, place, f"it cannot be measured: {'; '.join(examined.control_broken)}")
        raise CannotMeasure(f"{commit.short}: there is nothing that it could be compared with")

    def _controls(self, commit: Commit, place: WatchPlace) -> Iterator[Control | None]:
        """The best first, without controls that turned out to be unusable. One None: nothing is compared."""
        if not self._plan.compare:
            yield None
            return
        base = self._pulled.base if self._pulled else None
        for control in controls(self._repository, commit, self._plan.against, base):
            if control.is_treatment or (control.commit.hash, place.name) not in self._unusable:
                yield control

    def _control_side(self, control: Control | None, treatment: BuiltCommit, place: WatchPlace) -> BuiltCommit | None:
        if control is None or control.is_treatment:
            return None if control is None else treatment
        return BuiltCommit(control.commit, self._work.build(control.commit, place.platform))

    def _rule_out(self, control: Control | None, place: WatchPlace, why: str) -> None:
        if control is not None:
            self._unusable.add((control.commit.hash, place.name))
            self._observer.on_trouble(f"{control.commit.short} cannot be the control: {why}")

    def _examined(
        self, treatment: BuiltCommit, against: BuiltCommit | None, place: WatchPlace, control: Control | None
    ) -> Examined:
        def measure(purpose: RunType, regressed: tuple[EffectKey, ...]) -> Measured:
            return self._work.measure(
                WatchTrial(treatment=treatment, control=against, place=place, purpose=purpose, regressed=regressed)
            )

        if control is not None:
            known = self._known(treatment.commit, control, place)
            return examine(measure, known, same_commit=control.is_treatment)
        made = measure(RunType.BENCHMARK, ())
        return Examined(
            outcome=CommitOutcome.BROKEN if made.broken else CommitOutcome.MEASURED,
            runs=(RunMade(purpose=RunType.BENCHMARK, run=made.run),),
            broken=tuple(f"{name}: {why}" for name, why in made.broken.items()),
            notes=made.notes,
        )

    def _known(self, treatment: Commit, control: Control, place: WatchPlace) -> dict[EffectKey, EarlierCall]:
        """Calls of commits between the control and this one. Commits outside the branch, or later, are no cause."""
        between = self._repository.commits(control.commit, treatment)
        order = {commit.hash: number for number, commit in enumerate(between) if commit.hash != treatment.hash}
        records = sorted((r for r in self._records if r.commit in order), key=lambda r: order[r.commit])
        return calls_against(records, control.commit, place.name)

    def _recorded(self) -> Commit | None:
        """The last one finished, as the commit file has it."""
        text = self._commit_file.read()
        found = recorded_commit(self._repository, text)
        if found is not None:
            self._observer.on_note(f"going on after {found.short}, the last commit finished")
        elif text is not None:
            shown = text if len(text) <= 60 else f"{text[:60]}…"
            what = f"{self._commit_file.path}: '{shown}' is no commit of this repository"
            self._observer.on_trouble(f"{what}; starting as if there were no such file")
        return found

    def _exit_code(self) -> int:
        """1: a commit regressed, broke or could not be built; 3: none could be built, or one could not be measured."""
        if self._outcomes and all(outcome is CommitOutcome.BUILD_FAILED for outcome in self._outcomes):
            return CannotMeasure.exit_code
        if any(outcome in FAILURES for outcome in self._outcomes):
            return 1
        return CannotMeasure.exit_code if self.unmeasured() else 0


class _BuildAhead:
    """Builds one commit in another thread, while another is measured elsewhere. A context manager: leaving it ends that."""

    def __init__(self, work: WatchWork) -> None:
        self._work = work
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="build")
        self._builds: dict[tuple[str, str | None], Future[BuiltRevision]] = {}

    def __enter__(self) -> _BuildAhead:
        return self

    def __exit__(self, *_: object) -> None:
        if any(not build.done() for build in self._builds.values()):
            self._work.stop_building()
        self._pool.shutdown(cancel_futures=True)

    def begin(self, commit: Commit, place: WatchPlace) -> None:
        key = (commit.hash, place.platform)
        if key not in self._builds:
            self._builds[key] = self._pool.submit(self._work.build, commit, place.platform)

    def take(self, commit: Commit, place: WatchPlace) -> BuiltRevision:
        begun = self._builds.pop((commit.hash, place.platform), None)
        return self._work.build(commit, place.platform) if begun is None else begun.result()


def _record(
    commit: Commit, place: WatchPlace, control: Control | None, examined: Examined, log: str | None = None
) -> CommitRecord:
    return CommitRecord(
        commit=commit.hash,
        commit_time=time_of(commit),
        subject=commit.subject,
        outcome=examined.outcome,
        ended=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        place=place.name,
        control=None if control is None else control.commit.hash,
        control_time=None if control is None else time_of(control.commit),
        control_is="" if control is None else control.why,
        runs=examined.runs,
        effects=examined.effects,
        broken=examined.broken,
        notes=examined.notes,
        log=log,
    )
