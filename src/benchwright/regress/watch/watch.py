"""Watches a repository: what is pulled, where it is built and measured, and what is kept between two watches."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from benchwright.core.comparison import Effect
from benchwright.core.decision import Decision
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.revision import CONTROL, TREATMENT, RevisionInfo
from benchwright.core.run import Result, Run, why
from benchwright.core.status import Status
from benchwright.environments.tools import Tools
from benchwright.executors.interruption import finishes_on_sigterm
from benchwright.executors.observer import Observer
from benchwright.executors.registry import is_here
from benchwright.kinds.spec.options import spec_options_of
from benchwright.regress.ab import A_A, KIND, AbOutcome, outcome_of
from benchwright.regress.builder import build
from benchwright.regress.builds import BuildRecipe, BuiltRevision
from benchwright.regress.repository import Commit, SourceRepository, open_repository_of
from benchwright.regress.revision_paths import in_worktree
from benchwright.regress.sides import variation_of_build
from benchwright.regress.watch.clock import PatientClock
from benchwright.regress.watch.commits import is_hash
from benchwright.regress.watch.control import Against, Control
from benchwright.regress.watch.examination import Measured
from benchwright.regress.watch.records import CallMark, CommitRecord, record_of_effect
from benchwright.regress.watch.state import CommitFile, Journal, StatusFile, alone
from benchwright.regress.watch.watcher import WatchLoop
from benchwright.regress.watch.work import BuiltCommit, Pulled, WatchObserver, WatchPlace, WatchPlan, WatchTrial
from benchwright.results.after_run import exit_code
from benchwright.runner.device_selection import orders_for_devices
from benchwright.runner.run import RunOrder, resolve_order, run
from benchwright.runner.variation import Variation
from benchwright.runs.delivery import NotReported

# The runs of a watch: their folders, the commits they compare, and their results.


_PARTS = ("op", "type", "output")  # labels that name a part of a model
_NET = "NET"


class WatchedRuns:
    """Makes the runs."""

    def __init__(
        self,
        order: RunOrder,
        platforms: Sequence[str],
        decision: Decision,
        repository: SourceRepository,
        observer: Observer,
    ) -> None:
        self._order = order
        self._platforms = platforms
        self._decision = decision
        self._repository = repository
        self._observer = observer
        self._at: dict[str, RunOrder] = {}

    @property
    def is_elsewhere(self) -> bool:
        """Whether measuring leaves this machine alone."""
        if self._platforms:
            return all(platform.lower().startswith("android") for platform in self._platforms)
        return not is_here(self._order.options.on)

    def places(self) -> Sequence[WatchPlace]:
        """Every device that is meant, as long as it is attached; one place without a name if none is named."""
        self._at.clear()
        places = []
        for platform in self._platforms or (None,):
            options = replace(self._order.options, platform=platform)
            chosen = orders_for_devices(replace(self._order, options=options))
            for note in chosen.notes:
                self._observer.on_trouble(note)
            for each in chosen.orders:
                name = " ".join(word for word in (platform, each.name) if word)
                self._at[name] = each.order
                places.append(WatchPlace(name, platform))
        return places

    def measure(self, trial: WatchTrial) -> Measured:
        try:
            made = self._run(trial)
        except InvalidInput as error:
            return self._unreadable(trial, error)
        if trial.control is None:
            if exit_code(made) == CannotMeasure.exit_code:
                raise CannotMeasure(_reason(made))
            return Measured(run=made.id, broken={r.benchmark.name: why(r) for r in made.results if _has_failed(r)})
        outcome = outcome_of(made)
        broken, control_broken = _failures(made)
        if not outcome.comparisons and not broken and not control_broken:
            broken, control_broken = _lacking(made)
        if outcome.exit_code == CannotMeasure.exit_code and not broken and not control_broken:
            raise CannotMeasure(_reason(made, outcome.table.effects))
        return Measured(
            run=made.id,
            effects=tuple(record_of_effect(effect) for effect in outcome.table.effects),
            broken=broken,
            control_broken=control_broken,
            notes=_notes(outcome, broken),
        )

    def _unreadable(self, trial: WatchTrial, error: InvalidInput) -> Measured:
        """A target that only one side can read, such as a suite with a mistake, is that commit's fault; else the user's."""
        if trial.control is None:
            raise error
        order = self._ordered(trial)
        wrong: dict[str, InvalidInput] = {}
        for variation in order.variations:
            try:
                resolve_order(replace(order, variations=(variation,)))
            except InvalidInput as found:
                wrong[variation.side] = found
        if len(wrong) != 1:
            raise wrong.get(TREATMENT, error)
        reasons = {side: {"target": str(found)} for side, found in wrong.items()}
        return Measured(run="", broken=reasons.get(TREATMENT, {}), control_broken=reasons.get(CONTROL, {}))

    def _run(self, trial: WatchTrial) -> Run:
        try:
            return run(self._ordered(trial), self._observer)
        except NotReported as error:
            self._observer.on_trouble(str(error))
            return error.run

    def _ordered(self, trial: WatchTrial) -> RunOrder:
        order = self._at[trial.place.name]
        given = spec_options_of(order.options)
        options = replace(order.options, run_type=trial.purpose.value, regressed_types=_types(trial))
        variations = [self._variation(TREATMENT, trial.treatment, given.treatment)]
        labels = {"run_type": trial.purpose.value, "commit": trial.treatment.commit.hash}
        if trial.control is not None:
            variations.insert(0, self._variation(CONTROL, trial.control, given.control))
            labels["control_commit"] = trial.control.commit.hash
            if trial.control.commit.hash == trial.treatment.commit.hash:
                labels[KIND] = A_A
            options = options.until(self._decision)
        return replace(order, options=options, variations=tuple(variations), labels=order.labels | labels)

    def _variation(self, side: str, at: BuiltCommit, info: RevisionInfo | None) -> Variation:
        """`info`: what the user's `--info` says about this side."""
        words = f"{at.commit.short} {at.commit.subject}".strip()
        revision = info or RevisionInfo()
        known = replace(
            revision,
            commit=at.commit.hash,
            commit_time=at.commit.time.timestamp(),
            programs=revision.programs | at.built.programs,
        )
        return replace(variation_of_build(side, words, self._repository, at.commit, at.built), info=known)


def _pairs(made: Run) -> list[tuple[Result, Result]]:
    """Control and treatment of each benchmark that both have."""
    sides: dict[str, dict[str, Result]] = {}
    for result in made.results:
        if result.benchmark.side is not None:
            sides.setdefault(result.benchmark.pair, {})[result.benchmark.side] = result
    return [(found[CONTROL], found[TREATMENT]) for found in sides.values() if len(found) == 2]


def _failures(made: Run) -> tuple[dict[str, str], dict[str, str]]:
    """Benchmarks that failed in the treatment only, and in the control only."""
    broken, control_broken = dict[str, str](), dict[str, str]()
    for control, treatment in _pairs(made):
        if _has_failed(treatment) and not _has_failed(control):
            broken[treatment.benchmark.pair] = why(treatment)
        elif _has_failed(control) and not _has_failed(treatment):
            control_broken[control.benchmark.pair] = why(control)
    return broken, control_broken


def _lacking(made: Run) -> tuple[dict[str, str], dict[str, str]]:
    """The same of two commits that have no benchmark in common. One that only brings new ones is not to blame."""
    alone = [result.benchmark for result in made.results if result.benchmark.withheld]
    new, removed = ({b.pair: b.withheld or "" for b in alone if b.side == side} for side in (TREATMENT, CONTROL))
    return ({}, new) if new else (removed, {})


def _has_failed(result: Result) -> bool:
    return result.status is Status.FAILED


def _types(trial: WatchTrial) -> tuple[str, ...]:
    """The types of records that regressed, as `--regressed-types` takes them."""
    found = [
        next((dict(labels)[part] for part in _PARTS if part in dict(labels)), _NET) for _, _, labels in trial.regressed
    ]
    return tuple(dict.fromkeys(found))


def _notes(outcome: AbOutcome, broken: dict[str, str]) -> tuple[str, ...]:
    """Remarks for a reader of the verdicts, each once."""
    remarks = [str(note) for note in (*outcome.table.doubts, *outcome.table.remarks)]
    remarks += [text for text in outcome.table.missing if text.partition(":")[0] not in broken]
    remarks += [f"{e.benchmark} {e.metric}: {e.advice}" for e in outcome.table.effects if e.advice and not e.beside]
    return tuple(dict.fromkeys(remarks))


def _reason(made: Run, effects: Sequence[Effect] = ()) -> str:
    """Why there is nothing to judge by."""
    failed = [f"{r.benchmark.name}: {why(r)}" for r in made.results if r.status is not Status.OK]
    undecided = (e for e in effects if e.interval is None and not e.beside)
    reasons = failed[:3] or [str(text) for e in undecided for text in (*e.doubts, e.advice) if text][:2]
    return f"nothing could be compared: {'; '.join(reasons) or 'too few launches'} (run {made.id})"


JOURNAL = "journal.jsonl"
_OPTIONS = {"forgotten": "forget", "acknowledged": "acknowledge"}


class WatchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Request for a watch. `order`: the run to make of each commit. `recipe`: how to build one, for a platform still to be named."""

    order: RunOrder
    repo_dir: str
    kind: str = "git"  # or another system of revision control
    remote: str | None = None  # None: the usual one if there is one, else nothing is fetched
    branch: str | None = None  # None: the remote's own
    commit: str | None = None  # a branch, or the first commit to measure
    base_commit: str | None = None
    against: Against = Against.WEEK
    step: int = 1
    compare: bool = True
    commit_file: str | None = None
    status_file: str | None = None
    interval_s: float | None = None
    same_host: bool = False
    platforms: tuple[str, ...] = ()
    recipe: BuildRecipe = BuildRecipe()
    decision: Decision = Decision()


class PendingCommit(msgspec.Struct, frozen=True):
    """A commit that a watch would measure now, and what it would compare it with."""

    commit: Commit
    control: Control | None


def watch(order: WatchOrder, watching: WatchObserver, observer: Observer) -> int:
    """Until nothing is new, or it is asked to stop; returns the exit code. Interrupted on Ctrl-C.

    `watching` hears of commits, `observer` of their builds and runs.
    """
    with ExitStack() as stack:
        opened = _Opened(order, watching, observer)
        for folder in opened.locks:
            stack.enter_context(alone(folder))
        opened.commit_file.check()
        return opened.watcher(stack.enter_context(finishes_on_sigterm())).run()


def pending_commits(order: WatchOrder, watching: WatchObserver, observer: Observer) -> list[PendingCommit]:
    """Commits that would be measured now; new commits are fetched, but neither built nor measured."""
    watcher = _Opened(order, watching, observer).watcher(threading.Event())
    new = watcher.pending().commits
    again = [commit for commit in watcher.unmeasured() if commit not in new]
    return [PendingCommit(commit, watcher.control_of(commit)) for commit in (*new, *again)]


def mark_call(order: WatchOrder, text: str, mark: Literal["forgotten", "acknowledged"]) -> CommitRecord:
    """Marks what a commit was called for, in the journal of this watch; InvalidInput if it was called for nothing. Returns its
    record, as it was."""
    journal = Journal(_folder(order, _repository(order)) / JOURNAL)
    called = [record for record in journal.read() if record.called]
    found = [record for record in called if is_hash(text) and record.commit.startswith(text.lower())]
    if not found:
        known = ", ".join(dict.fromkeys(record.commit[:10] for record in called))
        remedy = f"known are {known}" if known else "repeat the whole command of the watch, with this option"
        raise InvalidInput(
            f"this watch has called no regression of '{text}'", where=f"--{_OPTIONS[mark]}", remedy=remedy
        )
    if len({record.commit for record in found}) > 1:
        raise InvalidInput(
            f"'{text}' is the beginning of several commits", where=f"--{_OPTIONS[mark]}", remedy="add digits"
        )
    journal.add(CallMark(mark=mark, commit=found[0].commit, marked=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"))
    return found[-1]


def _folder(order: WatchOrder, repository: SourceRepository) -> Path:
    """The folder with the state kept between two watches of the same target."""
    standing = replace(order, order=in_worktree(repository.root, order.order))
    return order.order.base.path / "watch" / _identity(standing, repository)


class _Opened:
    """A watch whose options make sense. Nothing is written yet."""

    def __init__(self, order: WatchOrder, watching: WatchObserver, observer: Observer) -> None:
        self.watching, self.observer = watching, observer
        self.repository = _repository(order)
        self.order = replace(order, order=in_worktree(self.repository.root, order.order))
        base = order.order.base.path / "watch"
        self.folder = _folder(order, self.repository)
        self.locks = [self.folder]
        if order.commit_file is None:
            self.commit_file = CommitFile(self.folder / "last-commit")
        else:
            path = os.path.realpath(order.commit_file)
            self.commit_file = CommitFile(Path(path))
            self.locks.append(base / "commit-files" / hashlib.sha256(os.fsencode(path)).hexdigest()[:16])

    def watcher(self, asked: threading.Event) -> WatchLoop:
        order = self.order
        work = _Work(order, self.repository, self.watching, self.observer)
        return WatchLoop(
            self.repository,
            WatchPlan(
                step=order.step,
                compare=order.compare,
                against=order.against,
                interval_s=order.interval_s,
                overlap=work.runs.is_elsewhere and not order.same_host,
            ),
            work,
            commit_file=self.commit_file,
            journal=Journal(self.folder / JOURNAL),
            clock=PatientClock(asked, None if order.status_file is None else StatusFile(Path(order.status_file))),
            observer=self.watching,
        )


def _repository(order: WatchOrder) -> SourceRepository:
    return open_repository_of(order.kind, order.repo_dir, "--repo-dir")


def _identity(order: WatchOrder, repository: SourceRepository) -> str:
    """The name of its folder: the same command goes on where it stopped, another one starts anew."""
    options = order.order.options
    root = os.path.realpath(repository.root)
    parts = (root, order.remote, order.branch, order.commit, options.targets, options.command, options.commands)
    digest = hashlib.sha256(msgspec.json.encode([*parts, order.platforms, options.on])).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '-', os.path.basename(root)) or 'repository'}-{digest}"


class _Work:
    """Pulls, builds and measures."""

    def __init__(
        self, order: WatchOrder, repository: SourceRepository, watching: WatchObserver, observer: Observer
    ) -> None:
        self._order = order
        self._repository = repository
        self._observer = observer
        self._branch = WatchedBranch(repository, order, watching)
        self._cache = order.order.base.path / "builds-of-revisions"
        self._tools = Tools()
        self.runs = WatchedRuns(order.order, order.platforms, order.decision, repository, observer)

    def pull(self) -> Pulled:
        return self._branch.pull()

    def places(self) -> Sequence[WatchPlace]:
        return self.runs.places()

    def build(self, commit: Commit, platform: str | None) -> BuiltRevision:
        recipe = replace(self._order.recipe, platform=platform)
        return build(self._repository, commit, recipe, self._cache, self._observer, self._tools)

    def stop_building(self) -> None:
        self._tools.stop()

    def measure(self, trial: WatchTrial) -> Measured:
        return self.runs.measure(trial)


class WatchedBranch:
    """The branch of a remote, or of the repository itself, and what the options say about its commits."""

    def __init__(self, repository: SourceRepository, order: WatchOrder, watching: WatchObserver) -> None:
        self._repository = repository
        self._order = order
        self._watching = watching
        self._remote = self._chosen_remote()

    def pull(self) -> Pulled:
        if self._remote is not None:
            self._repository.fetch(self._remote)
        branch, first = self._begin()
        base = self._order.base_commit
        return Pulled(
            tip=self._repository.commit(branch, "--branch"),
            first=first,
            base=None if base is None else self._repository.commit(base, "--base-commit"),
        )

    def _begin(self) -> tuple[str, Commit | None]:
        """The branch, as git understands it, and the first commit to measure if `--commit` names one."""
        given, commit = self._order.branch, self._order.commit
        branch_of_commit = None if commit is None else self._known(commit)
        if given is None:
            if commit is None or branch_of_commit is not None:
                return branch_of_commit or self._default(), None
            return self._default(), self._repository.commit(commit, "--commit")
        branch = self._known(given)
        if branch is None:
            place = f"the remote '{self._remote}'" if self._remote else str(self._repository.root)
            raise InvalidInput(
                f"{place} has no branch '{given}'", where="--branch", remedy="list them with: git branch -a"
            )
        if commit is None or branch_of_commit == branch:
            return branch, None
        return branch, self._repository.commit(branch_of_commit or commit, "--commit")

    def _default(self) -> str:
        if self._remote is None and self._repository.kind == "git":
            return "HEAD"
        return self._repository.default_branch(self._remote or "")

    def _known(self, name: str) -> str | None:
        """A branch, as the repository understands it; None if there is none of that name."""
        if self._repository.kind != "git":  # a branch has one name everywhere
            full = name
            if is_hash(name):
                return None
        else:
            own = name.removeprefix(f"{self._remote}/") if self._remote else name
            full = f"refs/heads/{own}" if self._remote is None else f"refs/remotes/{self._remote}/{own}"
        try:
            self._repository.commit(full)
        except InvalidInput:
            return None
        return full

    def _chosen_remote(self) -> str | None:
        known, usual = self._repository.remotes(), self._repository.usual_remote
        named = self._order.remote
        if named is None:
            if usual not in known:
                self._watching.on_note(f"there is no remote '{usual}': the repository's own commits are watched")
            return usual if usual in known else None
        if named not in known:
            remedy = f"use one of {', '.join(known)}" if known else "add one with: git remote add"
            raise InvalidInput(f"there is no remote '{named}'", where="--remote-repository", remedy=remedy)
        return named
