"""Watches a repository: what is pulled, where it is built and measured, and what is kept between two watches."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from benchwright.app.regressions.target_folder import standing_in
from benchwright.app.regressions.watched_runs import WatchedRuns
from benchwright.app.run import RunOrder
from benchwright.core.decision import Decision
from benchwright.core.errors import InvalidInput
from benchwright.environments.tools import Tools
from benchwright.executors.observer import Observer
from benchwright.executors.stopping import finishes_on_sigterm
from benchwright.regress.builds import BuildRecipe, BuiltRevision, build
from benchwright.regress.mercurial import HgRepository
from benchwright.regress.repository import Commit, GitRepository, SourceRepository
from benchwright.regress.watch.commits import is_hash
from benchwright.regress.watch.control import Against, Control
from benchwright.regress.watch.examination import Measured
from benchwright.regress.watch.records import CallMark, CommitRecord
from benchwright.regress.watch.state import CommitFile, Journal, StatusFile, alone
from benchwright.regress.watch.watcher import WatchLoop
from benchwright.regress.watch.work import Pulled, WatchObserver, WatchPlace, WatchPlan, WatchTrial

JOURNAL = "journal.jsonl"
_OPTIONS = {"forgotten": "forget", "acknowledged": "acknowledge"}
_LOOK_S = 1.0  # how often it looks for a reason to stop while it waits
_USUAL_REMOTE = {"git": "origin", "hg": "default"}


class WatchOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to watch. `order`: the run to make of each commit. `recipe`: how to build one, for a platform still to be named."""

    order: RunOrder
    repo_dir: str
    kind: str = "git"  # or hg
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
    """What would be measured now; new commits are fetched, but neither built nor measured."""
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
    """What is kept between two watches of the same."""
    standing = replace(order, order=standing_in(repository.root, order.order))
    return order.order.base.path / "watch" / _identity(standing, repository)


class _Opened:
    """A watch whose options make sense. Nothing is written yet."""

    def __init__(self, order: WatchOrder, watching: WatchObserver, observer: Observer) -> None:
        self.watching, self.observer = watching, observer
        self.repository = _repository(order)
        self.order = replace(order, order=standing_in(self.repository.root, order.order))
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
            clock=_Clock(asked, None if order.status_file is None else StatusFile(Path(order.status_file))),
            observer=self.watching,
        )


def _repository(order: WatchOrder) -> SourceRepository:
    opens = HgRepository.open if order.kind == "hg" else GitRepository.open
    return opens(order.repo_dir, "--repo-dir")


def _identity(order: WatchOrder, repository: SourceRepository) -> str:
    """The name of its folder: the same command goes on where it stopped, another one starts anew."""
    options = order.order.options
    root = os.path.realpath(repository.root)
    told = (root, order.remote, order.branch, order.commit, options.targets, options.command, options.commands)
    digest = hashlib.sha256(msgspec.json.encode([*told, order.platforms, options.on])).hexdigest()[:10]
    return f"{re.sub(r'[^A-Za-z0-9._-]', '-', os.path.basename(root)) or 'repository'}-{digest}"


class _Clock:
    """Time, and whether SIGTERM or the status file asks to stop."""

    def __init__(self, asked: threading.Event, status_file: StatusFile | None) -> None:
        self._asked = asked
        self._status_file = status_file

    def now(self) -> float:
        return time.monotonic()

    def is_stopping(self) -> bool:
        return self._asked.is_set() or (self._status_file is not None and self._status_file.asks_to_stop())

    def wait(self, seconds: float) -> None:
        until = self.now() + seconds
        while (left := until - self.now()) > 0 and not self.is_stopping():
            self._asked.wait(min(left, _LOOK_S))


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
        if self._repository.kind == "hg":  # a branch has one name everywhere
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
        known, usual = self._repository.remotes(), _USUAL_REMOTE[self._repository.kind]
        named = self._order.remote
        if named is None:
            if usual not in known:
                self._watching.on_note(f"there is no remote '{usual}': the repository's own commits are watched")
            return usual if usual in known else None
        if named not in known:
            remedy = f"use one of {', '.join(known)}" if known else "add one with: git remote add"
            raise InvalidInput(f"there is no remote '{named}'", where="--remote-repository", remedy=remedy)
        return named
