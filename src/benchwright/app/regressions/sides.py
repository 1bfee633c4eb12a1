"""The two sides of an A/B: commits and packages are built, the rest only changes how the target is run."""

from __future__ import annotations

import os

import msgspec
from msgspec.structs import replace

from benchwright.core.errors import InvalidInput
from benchwright.core.inputs.revision import Revision, RevisionKind
from benchwright.core.inputs.specification import CONTROL, TREATMENT
from benchwright.executors.observer import Observer
from benchwright.options.table import Options
from benchwright.regress.belonging import kept_words, refuse_shared_package
from benchwright.regress.builds import BuildRecipe, BuiltRevision, build
from benchwright.regress.mercurial import open_repository
from benchwright.regress.packages import build_packages, installed_in
from benchwright.regress.repository import Commit, GitRepository, SourceRepository
from benchwright.regress.variation import Variation, simple_variation
from benchwright.regress.working_tree import working_tree_commit
from benchwright.runs.base_folder import BaseFolder

UNCHANGED = "the target as it is"
WORKING_TREE = "working tree"
_MOST_VERSIONS = 4


class Sides(msgspec.Struct, frozen=True):
    """What is compared, as in an AbOrder. `options`: what is measured on both."""

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
        said = f" ({', '.join(versions[:_MOST_VERSIONS])}{more})" if versions else ""
        return Variation(side=side, revision=f"{words}{said}", python=built.python, path=built.path, env={**built.env})


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
            what = "the working tree of a Mercurial repository cannot be measured"
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
