"""The two sides of an A/B: commits and packages are built, the rest only changes how the target is run."""

from __future__ import annotations

import os

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.inputs.revision import Revision, RevisionKind
from benchwright.core.inputs.specification import CONTROL, TREATMENT
from benchwright.executors.observer import Observer
from benchwright.regress.builds import BuildRecipe, BuiltRevision, build
from benchwright.regress.repository import Commit, GitRepository
from benchwright.regress.variation import Variation, simple_variation
from benchwright.regress.working_tree import working_tree_commit
from benchwright.runs.base_folder import BaseFolder

UNCHANGED = "the target as it is"
WORKING_TREE = "working tree"


class Sides(msgspec.Struct, frozen=True):
    """What is compared, as in an AbOrder."""

    control: Revision
    treatment: Revision | None = None
    repository: str | None = None
    recipe: BuildRecipe = BuildRecipe()

    @property
    def uses_git(self) -> bool:
        return any(r is not None and r.kind is RevisionKind.GIT for r in (self.control, self.treatment))


def built_sides(sides: Sides, base: BaseFolder, observer: Observer) -> tuple[Variation, Variation]:
    """Both, ready to be measured. InvalidInput if one is wrong, RevisionNotBuilt if one cannot be built."""
    if not sides.uses_git:
        for given, where in ((sides.recipe.command, "--build"), (sides.repository, "--repo-dir")):
            if given is not None:
                raise InvalidInput("is for commits, and none is compared", where=where, remedy="leave it out")
        return _without_git(CONTROL, sides.control, base, observer), _without_git(
            TREATMENT, sides.treatment, base, observer
        )
    repository = GitRepository.open(sides.repository or os.getcwd(), "--repo-dir" if sides.repository else "--control")
    maker = _Maker(repository, sides.recipe, base, observer)
    return maker.variation(CONTROL, sides.control), maker.variation(TREATMENT, sides.treatment)


def _without_git(side: str, revision: Revision | None, base: BaseFolder, observer: Observer) -> Variation:
    if revision is None:
        return Variation(side=side, revision=UNCHANGED)
    return simple_variation(side, revision, f"--{side}")


class _Maker:
    """Makes the sides of a comparison in which a repository takes part."""

    def __init__(self, repository: GitRepository, recipe: BuildRecipe, base: BaseFolder, observer: Observer) -> None:
        self._repository = repository
        self._recipe = recipe
        self._base = base
        self._observer = observer

    def variation(self, side: str, revision: Revision | None) -> Variation:
        if revision is not None and revision.kind is not RevisionKind.GIT:
            return _without_git(side, revision, self._base, self._observer)
        if revision is None:
            commit = working_tree_commit(self._repository)
            words = f"{WORKING_TREE} ({self._repository.commit('HEAD').short} {commit.subject})"
        else:
            commit = self._repository.commit(revision.text, f"--{side}")
            words = f"{revision.text} ({commit.short} {commit.subject})"
        built = build(self._repository, commit, self._recipe, self._base.path / "builds-of-revisions", self._observer)
        return variation_of_build(side, words, self._repository, commit, built)


def variation_of_build(
    side: str, words: str, repository: GitRepository, commit: Commit, built: BuiltRevision
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
