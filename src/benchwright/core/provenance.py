"""Provenance: the code, repositories, environment and packages a run's numbers depend on, and what changed in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec

ABSENT = "absent"  # the digest of a missing file
_MOST_NAMED = 5
_MOST_SHOWN = 2  # revisions in one line
_OURS = ("benchwright", "benchprobe", "benchmodels", "benchload")


class Repository(msgspec.Struct, frozen=True, kw_only=True):
    """A working tree of git or another `system`. `changes`: files that differ from commit `base`, with their digests; None if that took
    too long. `modified`: whether files differ from `head`. `files`: those named in the command, if the working folder is not in it.
    `packages`: editable installs from it that a program could import.
    """

    root: str
    base: str
    head: str
    changes: dict[str, str] | None = {}
    system: str = "git"
    branch: str | None = None
    time: str | None = None  # of `head`, ISO 8601 in UTC
    modified: bool | None = None
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


class CodeRevision(msgspec.Struct, frozen=True, kw_only=True):
    """A commit whose code a run used. `modified`: whether files differed from it; None if that is unknown.

    It is that of the working folder, unless it has `files` (named in the command) or `packages` (editable installs).
    """

    root: str
    commit: str
    system: str = "git"
    branch: str | None = None
    time: str | None = None
    modified: bool | None = None
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """`1a2b3c4d5e`, with a `+` where files were modified."""
        return f"{self.commit[:10]}{'+' if self.modified else ''}"

    @property
    def words(self) -> str:
        """`main 1a2b3c4d5e+`."""
        return f"{self.branch} {self.short}" if self.branch else self.short

    @property
    def subject(self) -> str:
        """Whose it is: `the working folder`, `train.py` or `library (editable)`."""
        if self.packages:
            return f"{', '.join(self.packages)} (editable)"
        return ", ".join(self.files) or "the working folder"


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """`files`: path → digest. `variables`: only ones that explain performance. `packages`: of each interpreter."""

    files: dict[str, str] = {}
    repositories: tuple[Repository, ...] = ()
    variables: dict[str, str] = {}
    packages: dict[str, dict[str, str]] = {}


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """The user resumed the run although something had changed. `before`: the jobs that were complete by then."""

    when: str
    differences: tuple[str, ...]
    before: tuple[str, ...]
    provenance: Provenance


class History(msgspec.Struct, frozen=True, kw_only=True):
    """provenance.json: what a run began with, and what it was resumed with if that differs."""

    began: Provenance
    resumed: tuple[Resumption, ...] = ()

    @property
    def newest(self) -> Provenance:
        return self.resumed[-1].provenance if self.resumed else self.began

    def version_of(self, job: str) -> int:
        """Which of the run's versions a job was measured with, from 0."""
        return sum(1 for resumption in self.resumed if job not in resumption.before)


def revisions_of(history: History | None) -> tuple[CodeRevision, ...]:
    """The commits a run was measured with last: that of the folder it ran in first, if it has one."""
    return tuple(
        CodeRevision(
            root=found.root,
            commit=found.head,
            system=found.system,
            branch=found.branch,
            time=found.time,
            modified=found.modified,
            files=found.files,
            packages=found.packages,
        )
        for found in (history.newest.repositories if history is not None else ())
    )


def revision_words(revisions: Sequence[CodeRevision]) -> str:
    """`main 1a2b3c4d5e+` of the working folder, `main 1a2b3c4d5e+ (train.py)` of a file elsewhere; where there is neither, of an
    editable package: `library main 1a2b3c4d5e+`.

    benchwright itself is what measures.
    """
    if measured := [each for each in revisions if not each.packages]:
        shown = (
            f"{each.words} ({os.path.basename(each.files[0])})" if each.files else each.words
            for each in measured[:_MOST_SHOWN]
        )
        return ", ".join(dict.fromkeys(shown))
    named = [(package, each) for each in revisions for package in each.packages[:1] if package not in _OURS]
    return next((f"{package} {each.words}" for package, each in named), "")


def differences(old: Provenance, new: Provenance) -> list[str]:
    """Changes in words; empty if there are none."""
    return [
        *_files(old.files, new.files),
        *(line for repository in new.repositories for line in _repository(old, repository)),
        *_values("environment: {}", _compared(old.variables), _compared(new.variables)),
        *_packages(old.packages, new.packages),
    ]


def _compared(variables: Mapping[str, str]) -> dict[str, str]:
    """Without TMPDIR: a cluster gives every session its own, on the same disk."""
    return {name: value for name, value in variables.items() if name != "TMPDIR"}


def _files(old: Mapping[str, str], new: Mapping[str, str], where: str = "") -> Iterator[str]:
    words = {True: "no longer exists", False: "was changed"}
    changed = [name for name in old.keys() | new.keys() if old.get(name, ABSENT) != new.get(name, ABSENT)]
    for name in sorted(changed)[:_MOST_NAMED]:
        is_new = old.get(name, ABSENT) == ABSENT
        yield f"{where}{name} {'is new' if is_new else words[new.get(name, ABSENT) == ABSENT]}"
    if len(changed) > _MOST_NAMED:
        yield f"{where}{len(changed) - _MOST_NAMED} more files changed"


def _repository(old: Provenance, now: Repository) -> Iterator[str]:
    before = next((r for r in old.repositories if r.root == now.root), None)
    if before is None or before.changes is None or now.changes is None:
        return  # the unknown does not count as a change; the files that are started are compared anyway
    where = f"{now.system} {now.root}: "
    if before.base != now.base:
        yield f"{where}commit {before.base[:12]} no longer exists; HEAD is at {now.head[:12]}"
        return
    # Both list how they differ from the same commit. It does not matter whether a change was committed since.
    names = {f"{now.root}/{name}" for name in before.changes | now.changes}
    known = {name.removeprefix(f"{now.root}/") for name in names if name in old.files}
    ours, theirs = ({n: d for n, d in c.items() if n not in known} for c in (before.changes, now.changes))
    if ours == theirs:
        return
    # An unlisted file is as committed.
    as_committed = dict.fromkeys(ours | theirs, "as committed")
    moved = f" (HEAD was {before.head[:12]}, is {now.head[:12]})" if before.head != now.head else ""
    yield from (line + moved for line in _files(as_committed | ours, as_committed | theirs, where))


def _values(form: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            was, now = (found.get(name, "not set") for found in (old, new))
            yield f"{form.format(name)} was {was}, is {now}"


def _packages(old: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for python in old:
        if python in new:
            changed = list(_values("package {}", old[python], new[python]))
            yield from (f"{line} ({python})" for line in changed[:_MOST_NAMED])
            if len(changed) > _MOST_NAMED:
                yield f"{len(changed) - _MOST_NAMED} more packages changed ({python})"
