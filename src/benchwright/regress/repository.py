"""Repositories whose revisions are compared. Nothing in the user's own working tree is changed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from benchwright.core.errors import CannotMeasure, InvalidInput, did_you_mean
from benchwright.core.git_command import GIT, LISTING, git_variables
from benchwright.core.registry import Registry
from benchwright.runs.provenance.working_trees import ENTRY_POINT_GROUP, WorkingTrees, nearest_tree

QUICK_S, SLOW_S = 60.0, 3600.0  # what reads the history; what may transfer or check out much
_FIELDS = "%H%x00%ct%x00%P%x00%s"


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """`time`: when it was committed, in UTC. `subject`: the first line of its message."""

    hash: str
    time: datetime
    parents: tuple[str, ...] = ()
    subject: str = ""

    @property
    def short(self) -> str:
        return self.hash[:10]


class SourceRepository(Protocol):
    """A repository of git, or of another system."""

    kind: str  # the name of its system
    usual_remote: str
    root: Path

    def fetch(self, remote: str) -> None:
        """Fetches new commits; CannotMeasure if the remote cannot be reached."""
        ...

    def commit(self, text: str, where: str | None = None) -> Commit:
        """The commit a user means; InvalidInput if there is none. `where`: the option that names it."""
        ...

    def commits(self, after: Commit, until: Commit) -> list[Commit]:
        """Commits after one commit until another, which is the last, the oldest first, along first parents."""
        ...

    def commits_since(self, time: datetime, until: Commit) -> list[Commit]:
        """Commits not before `time`, until a commit, which is the last, the oldest first, along first parents."""
        ...

    def is_ancestor(self, older: Commit, newer: Commit) -> bool: ...

    def remotes(self) -> tuple[str, ...]:
        """Their names."""
        ...

    def default_branch(self, remote: str) -> str:
        """As `commit` understands it, such as `origin/main`."""
        ...

    def worktree(self, commit: Commit, place: Path) -> Path:
        """Checks a commit out at `place`, submodules too, and returns that folder."""
        ...

    def forget_worktrees(self) -> None:
        """Forgets worktrees whose folders have been removed."""
        ...


class RevisionControl(WorkingTrees, Protocol):
    """A system other than git. Entry-point group: `benchwright.revision_control`; a name is what `--repo` takes."""

    def open(self, folder: str | os.PathLike[str], where: str | None = None) -> SourceRepository:
        """The repository that holds `folder`; InvalidInput if there is none. `where`: the option that names it."""
        ...


REVISION_CONTROL: Registry[Callable[[], RevisionControl]] = Registry(ENTRY_POINT_GROUP, "system of revision control")


def open_repository(folder: str | os.PathLike[str], where: str | None = None) -> SourceRepository:
    """The nearest one that holds `folder`, of any system; InvalidInput if there is none."""
    found = nearest_tree(Path(os.path.abspath(folder)))
    return open_repository_of(GitRepository.kind if found is None else found[1], folder, where)


def open_repository_of(kind: str, folder: str | os.PathLike[str], where: str | None = None) -> SourceRepository:
    """The same of one system."""
    if kind == GitRepository.kind:
        return GitRepository.open(folder, where)
    return REVISION_CONTROL.load(kind, where="--repo")().open(folder, where)


class CommandFailed(Exception):
    """A command of the system failed; the text is its own."""


def call(
    argv: Sequence[str], folder: Path, *, within_s: float, env: Mapping[str, str] | None = None, listed: str = ""
) -> str:
    """The output of a program; CommandFailed with its own words if it failed, or took longer. `listed`: see `git_variables`."""
    variables = git_variables(os.environ, listed) | {"LC_ALL": "C.UTF-8"} | dict(env or {})
    try:
        done = subprocess.run(
            argv, cwd=folder, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=within_s
        )
    except subprocess.TimeoutExpired:
        raise CommandFailed(f"{' '.join(argv[:2])} took longer than {within_s:.0f} s") from None
    except OSError as error:
        raise CommandFailed(f"{argv[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise CommandFailed(_reason(done.stderr.decode("utf-8", "replace")) or f"exit code {done.returncode}")
    # What cannot be decoded is kept where it is given back to git.
    return done.stdout.decode("utf-8", "surrogateescape" if argv == LISTING else "replace")


def _reason(printed: str) -> str:
    """The last thing said to have gone wrong, without its `fatal:`."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    wrong = [line for line in lines if line.startswith(("fatal:", "error:", "abort:"))]
    return re.sub(r"^(fatal|error|abort): ", "", (wrong or lines or [""])[-1])


def call_git(*words: str, folder: Path, within_s: float = QUICK_S, env: Mapping[str, str] | None = None) -> str:
    """The output of git there, without any program that the checkout names; CommandFailed as `call`."""
    listed = call(LISTING, folder, within_s=QUICK_S)
    return call([*GIT, *words], folder, within_s=within_s, env=env, listed=listed)


class GitRepository:
    """A git repository. Open it with `open`."""

    kind = "git"
    usual_remote = "origin"

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def open(cls, folder: str | os.PathLike[str], where: str | None = None) -> GitRepository:
        """The repository that holds `folder`; InvalidInput if there is none."""
        place = Path(folder)
        if not place.is_dir():
            raise InvalidInput(f"there is no folder '{folder}'", where=where, remedy="check the name")
        try:
            root = call([*GIT, "rev-parse", "--show-toplevel"], place, within_s=QUICK_S).rstrip("\n")
        except CommandFailed as error:
            remedy = "change into a git repository, or name its folder with --repo-dir"
            raise InvalidInput(f"{place}: {error}", where=where, remedy=remedy) from None
        return cls(Path(root))

    def fetch(self, remote: str) -> None:
        try:
            self._git("fetch", "--quiet", "--prune", "--", remote, within_s=SLOW_S)
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: git fetch {remote}: {error}") from None

    def commit(self, text: str, where: str | None = None) -> Commit:
        """InvalidInput also for what could be taken for an option."""
        try:
            if text.startswith("-"):
                raise CommandFailed("not a commit, branch or tag")
            hash = self._git("rev-parse", "--verify", "--quiet", f"{text}^{{commit}}").strip()
            return self._log("-1", hash, "--")[0]
        except CommandFailed as error:
            because = f" ({error})" if not str(error).startswith("exit code") else ""
            shallow = "git fetch --unshallow, or " if (self._git_folder() / "shallow").exists() else ""
            raise InvalidInput(
                f"there is no commit '{text}' in {self.root}{because}",
                where=where,
                remedy=self._near(text) or f"{shallow}name a commit, branch or tag that git log shows",
            ) from None

    def _near(self, text: str) -> str | None:
        """The branch or tag that may be meant."""
        try:
            return did_you_mean(text, self._git("for-each-ref", "--format=%(refname:short)").split())
        except CommandFailed:
            return None

    def commits(self, after: Commit, until: Commit) -> list[Commit]:
        return self._log("--first-parent", "--reverse", f"{after.hash}..{until.hash}", "--")

    def commits_since(self, time: datetime, until: Commit) -> list[Commit]:
        since = f"--since={time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"
        return self._log("--first-parent", "--reverse", since, until.hash, "--")

    def remotes(self) -> tuple[str, ...]:
        try:
            return tuple(self._git("remote").split())
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: {error}") from None

    def is_ancestor(self, older: Commit, newer: Commit) -> bool:
        try:
            self._git("merge-base", "--is-ancestor", older.hash, newer.hash)
        except CommandFailed as error:
            if str(error) == "exit code 1":
                return False
            raise CannotMeasure(f"{self.root}: {error}") from None
        return True

    def default_branch(self, remote: str) -> str:
        try:
            return self._git("rev-parse", "--abbrev-ref", "--verify", "--quiet", f"{remote}/HEAD").strip()
        except CommandFailed:
            pass
        try:
            listed = self._git("ls-remote", "--symref", "--", remote, "HEAD", within_s=SLOW_S)
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: git ls-remote {remote}: {error}") from None
        found = re.search(r"^ref: refs/heads/(\S+)\tHEAD$", listed, re.MULTILINE)
        if found is None:
            raise InvalidInput(f"the remote '{remote}' names no default branch", remedy="name a branch with --branch")
        return f"{remote}/{found[1]}"

    def worktree(self, commit: Commit, place: Path) -> Path:
        """An existing folder is an error. Hooks are not run."""
        try:
            words = ["worktree", "add", "--quiet", "--detach", "--force", "--force", str(place), commit.hash]
            self._git(*words, within_s=SLOW_S)
            if (place / ".gitmodules").exists():
                self._check_out_submodules(place)
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: {commit.short} cannot be checked out: {error}") from None
        return place

    def forget_worktrees(self) -> None:
        try:
            self._git("worktree", "prune")
        except CommandFailed:
            pass  # git prunes by itself in time

    def _check_out_submodules(self, place: Path) -> None:
        """From the user's own checkout where that has the commit, so that no network is needed."""
        words = [*self._local_submodules(place), "submodule", "--quiet", "update", "--init", "--recursive", "--force"]
        call_git(*words, folder=place, within_s=SLOW_S)

    def _local_submodules(self, place: Path) -> list[str]:
        """Settings that name the copies which the user's repository has of the submodules."""
        names = call_git("config", "--file", ".gitmodules", "--name-only", "--get-regexp", r"\.path$", folder=place)
        settings = []
        for name in re.findall(r"^submodule\.(.+)\.path$", names, re.MULTILINE):
            copy = self._git_folder() / "modules" / name
            wanted = self._submodule_commit(place, name)
            if wanted and copy.is_dir() and _has(copy, wanted):
                settings += ["-c", f"submodule.{name}.url={copy}", "-c", "protocol.file.allow=always"]
        return settings

    def _submodule_commit(self, place: Path, name: str) -> str:
        path = call_git("config", "--file", ".gitmodules", f"submodule.{name}.path", folder=place).strip()
        found = re.match(r"160000 commit ([0-9a-f]+)", call_git("ls-tree", "HEAD", path, folder=place))
        return found[1] if found else ""

    def _git_folder(self) -> Path:
        """The one that all worktrees share."""
        return Path(self._git("rev-parse", "--path-format=absolute", "--git-common-dir").rstrip("\n"))

    def _log(self, *words: str) -> list[Commit]:
        try:
            printed = self._git("log", "-z", "--no-show-signature", "--no-color", f"--format={_FIELDS}%x00", *words)
        except CommandFailed as error:
            raise CannotMeasure(f"{self.root}: {error}") from None
        fields = printed.split("\0")
        return [_commit(*fields[at : at + 4]) for at in range(0, len(fields) - 4, 5)]

    def _git(self, *words: str, within_s: float = QUICK_S) -> str:
        return call_git(*words, folder=self.root, within_s=within_s)


def _commit(hash: str, seconds: str, parents: str, subject: str) -> Commit:
    time = datetime.fromtimestamp(int(seconds), UTC)
    return Commit(hash=hash.strip(), time=time, parents=tuple(parents.split()), subject=subject)


def _has(repository: Path, commit: str) -> bool:
    try:
        call_git("cat-file", "-e", f"{commit}^{{commit}}", folder=repository)
    except CommandFailed:
        return False
    return True
