"""The two sides of an A/B: commits and packages are built, the rest only changes how the target is run."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.quantities import format_bytes
from benchwright.core.revision import CONTROL, TREATMENT, Revision, RevisionKind
from benchwright.executors.observer import Observer
from benchwright.options.table import Options
from benchwright.regress.builder import build
from benchwright.regress.builds import BuildRecipe, BuiltRevision
from benchwright.regress.packages import build_packages, installed_in
from benchwright.regress.repository import (
    SLOW_S,
    CommandFailed,
    Commit,
    GitRepository,
    SourceRepository,
    call_git,
    open_repository,
)
from benchwright.regress.revision_paths import kept_words, refuse_shared_package
from benchwright.runner.variation import Variation, simple_variation
from benchwright.runs.base_folder import BaseFolder

# The user's working tree as a separate commit, so that it is checked out and built as any other revision.


_MOST_NEW_BYTES = 64 << 20  # of files that git does not know yet: more are data, and would be copied
_NOBODY = {"NAME": "benchwright", "EMAIL": "benchwright@localhost"}


def working_tree_commit(repository: GitRepository) -> Commit:
    """The commit that holds the working tree as it is, with new files but without ignored ones.

    Nothing of the user's is changed: neither index nor branches. The same tree gives the same commit, HEAD if that has it.
    """
    head = repository.commit("HEAD")
    try:
        with tempfile.TemporaryDirectory() as folder:
            tree = _tree(repository, Path(folder) / "index")
        if tree == _git(repository, "rev-parse", "HEAD^{tree}"):
            return head
        when = f"{int(head.time.timestamp())} +0000"
        who = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in _NOBODY.items()}
        who |= {f"GIT_{role}_DATE": when for role in ("AUTHOR", "COMMITTER")}
        message = f"{head.subject}, with uncommitted changes"
        made = _git(repository, "commit-tree", tree, "-p", head.hash, "-m", message, env=who)
        return repository.commit(made)
    except CommandFailed as error:
        raise CannotMeasure(f"{repository.root}: the working tree cannot be read: {error}") from None


def _tree(repository: GitRepository, index: Path) -> str:
    new = _git(repository, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    size = sum(os.path.getsize(path) for name in new if os.path.isfile(path := repository.root / name))
    if size > _MOST_NEW_BYTES:
        raise InvalidInput(
            f"{repository.root} has {format_bytes(size)} of files that git does not know",
            where="--treatment",
            remedy="ignore them (.gitignore), or name a commit: --treatment HEAD",
        )
    env = {"GIT_INDEX_FILE": str(index)}
    _git(repository, "read-tree", "HEAD", env=env)
    _git(repository, "add", "--all", "--", ".", env=env)
    return _git(repository, "write-tree", env=env)


def _git(repository: GitRepository, *words: str, env: dict[str, str] | None = None) -> str:
    return call_git(*words, folder=repository.root, within_s=SLOW_S, env=env).strip()


UNCHANGED = "the target as it is"
WORKING_TREE = "working tree"
_MOST_VERSIONS = 4


class Sides(msgspec.Struct, frozen=True):
    """The sides to compare, as in an AbOrder. `options`: of the run that measures both."""

    options: Options
    control: Revision
    treatment: Revision | None
    repository: str | None
    recipe: BuildRecipe

    def uses(self, kind: RevisionKind) -> bool:
        return any(r is not None and r.kind is kind for r in (self.control, self.treatment))


def built_sides(sides: Sides, base: BaseFolder, observer: Observer) -> tuple[Variation, Variation]:
    """Both, ready to be measured. InvalidInput if one is wrong, RevisionNotBuilt if one cannot be built."""
    maker = _CommitMaker(sides, base, observer) if sides.uses(RevisionKind.GIT) else _SideMaker(sides, base, observer)
    return maker.variation(CONTROL, sides.control), maker.variation(TREATMENT, sides.treatment)


class _SideMaker:
    """Makes sides that need no repository."""

    def __init__(self, sides: Sides, base: BaseFolder, observer: Observer) -> None:
        self._sides = sides
        self._base = base
        self._observer = observer
        self._refuse_options()

    def _refuse_options(self) -> None:
        for given, where in ((self._sides.recipe.command, "--build"), (self._sides.repository, "--repo-dir")):
            if given is not None:
                raise InvalidInput("is for commits, and none is compared", where=where, remedy="leave it out")

    def variation(self, side: str, revision: Revision | None) -> Variation:
        if revision is None and self._sides.uses(RevisionKind.PIP):
            return self._packages(side, (), UNCHANGED)  # started in the same way as the other side
        if revision is None:
            return Variation(side=side, revision=UNCHANGED)
        if revision.kind is RevisionKind.PIP:
            return self._packages(side, revision.words(f"--{side}"), str(revision))
        return simple_variation(side, revision, f"--{side}")

    def _packages(self, side: str, wanted: tuple[str, ...], words: str) -> Variation:
        python = self._sides.options.python
        built = build_packages(wanted, self._base.revisions, python=python, observer=self._observer, where=f"--{side}")
        versions = [f"{name} {version}" for name, version in installed_in(built).items()]
        more = f" and {len(versions) - _MOST_VERSIONS} more" if len(versions) > _MOST_VERSIONS else ""
        suffix = f" ({', '.join(versions[:_MOST_VERSIONS])}{more})" if versions else ""
        return Variation(
            side=side, revision=f"{words}{suffix}", python=built.python, path=built.path, env={**built.env}
        )


class _CommitMaker(_SideMaker):
    """Makes the sides of a comparison in which a repository takes part."""

    def __init__(self, sides: Sides, base: BaseFolder, observer: Observer) -> None:
        super().__init__(sides, base, observer)
        where = "--repo-dir" if sides.repository else "--control"
        self._repository = open_repository(sides.repository or os.getcwd(), where)
        if sides.recipe.command is None and sides.recipe.framework is None:
            refuse_shared_package(self._repository, sides.options.python)

    def _refuse_options(self) -> None:
        """They are for commits."""

    def variation(self, side: str, revision: Revision | None) -> Variation:
        if revision is not None and revision.kind is not RevisionKind.GIT:
            return super().variation(side, revision)
        if revision is None:
            repository = self._with_working_tree()
            head, commit = repository.commit("HEAD"), working_tree_commit(repository)
            words = f"{WORKING_TREE} ({head.short} {commit.subject})"
        else:
            commit = self._repository.commit(revision.text, f"--{side}")
            words = f"{revision.text} ({commit.short} {commit.subject})"
            if side == TREATMENT and self._leaves_changes_out(commit):
                what = "uncommitted changes are not measured; leave --treatment out to measure them"
                self._observer.on_note(what)
        built = build(self._repository, commit, self._sides.recipe, self._base.revisions, self._observer)
        made = variation_of_build(side, words, self._repository, commit, built)
        kept = kept_words(self._sides.options, made, self._repository)
        for word in kept:
            self._observer.on_note(f"{word} is not part of {words}: the one here is used on both sides")
        return replace(made, kept=kept)

    def _with_working_tree(self) -> GitRepository:
        if not isinstance(self._repository, GitRepository):
            what = f"the working tree of a repository of {self._repository.kind} cannot be measured"
            raise InvalidInput(
                what, where="--treatment", remedy="commit it, and name the commit, such as --treatment ."
            )
        return self._repository

    def _leaves_changes_out(self, commit: Commit) -> bool:
        if not isinstance(self._repository, GitRepository):
            return False
        head = self._repository.commit("HEAD")
        return commit.hash == head.hash != working_tree_commit(self._repository).hash


def variation_of_build(
    side: str, words: str, repository: SourceRepository, commit: Commit, built: BuiltRevision
) -> Variation:
    """`words`: what the revision is called."""
    return Variation(
        side=side,
        revision=words,
        folder=None if built.folder is None else (os.path.realpath(repository.root), built.folder),
        python=built.python,
        path=built.path,
        env={**built.env},
        programs=built.programs,
        labels={"commit": commit.hash},
    )
