"""Provenance of a run's numbers: recorded at its start, and compared when it is resumed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.git_command import GIT, LISTING, git_variables
from benchwright.core.job import Job
from benchwright.core.kept_variables import kept_variables
from benchwright.core.provenance import History, Provenance, Repository, Resumption, differences
from benchwright.core.run import Plan
from benchwright.core.secrets import redact_text
from benchwright.record import is_complete
from benchwright.runs.base import Kinds
from benchwright.runs.provenance.code_files import code_files, tool_files
from benchwright.runs.provenance.file_digests import digest_of
from benchwright.runs.provenance.packages import editable_packages, environments_of, interpreters_of, site_folders
from benchwright.runs.provenance.working_trees import GIT_TREE, nearest_tree, tree_systems
from benchwright.runs.run_folder import RunFolder

# The working trees that files are in, and how they differ from a commit. Never takes long.


_PATIENCE_S = 2.0  # for all of them together
_MOST_REPOSITORIES = 4
_MOST_CHANGED = 500
_MOST_FILES = 3  # named of a repository
_CHANGED = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")


def repositories_of(
    folders: Iterable[str],
    bases: Mapping[str, str] | None = None,
    editable: Mapping[str, Sequence[str]] | None = None,
    files: Iterable[str] = (),
) -> tuple[Repository, ...]:
    """Repositories that hold `folders`; compared with the commits `bases`, by root, where they are known, else with HEAD.

    `files`: named in the command; `editable`: the packages that are installed from a folder. Where those lie in other
    repositories, they come later, in this order.
    """
    deadline = time.monotonic() + _PATIENCE_S
    roots: dict[str, list[str]] = {root: [] for folder in folders if (root := _root_of(folder)) is not None}
    working = set(roots)
    for path in files:
        root = _root_of(os.path.dirname(path))
        if root is not None and root not in working:
            roots.setdefault(root, []).append(os.path.relpath(path, root))
    packages: dict[str, list[str]] = {}
    for folder, names in (editable or {}).items():
        root = _root_of(folder)
        if root is not None and root not in roots:
            packages.setdefault(root, []).extend(names)
    found = (_state(root, (bases or {}).get(root), deadline) for root in [*roots, *packages][:_MOST_REPOSITORIES])
    return tuple(
        msgspec.structs.replace(
            state,
            files=tuple(roots.get(state.root, ())[:_MOST_FILES]),
            packages=tuple(packages.get(state.root, ())),
        )
        for state in found
        if state is not None
    )


def _root_of(folder: str) -> str | None:
    found = nearest_tree(Path(folder))
    return None if found is None else str(found[0])


def _state(root: str, base: str | None, deadline: float) -> Repository | None:
    """None if this is no working tree that git can read, or there is no git."""
    if (found := nearest_tree(Path(root))) is not None and found[1] != GIT_TREE:
        return tree_systems()[found[1]].state(root, base, deadline)
    listed = call(LISTING, root, deadline)
    if listed is None:
        return None
    git = partial(_git, root, deadline, git_variables(os.environ, os.fsdecode(listed), network=False))
    head = git("log", "-1", "--no-show-signature", "--no-color", "--format=%H %ct", "HEAD", "--")
    if not head:
        return None
    at, _, seconds = head.decode().strip().partition(" ")
    if base is None or not git("cat-file", "-e", f"{base}^{{commit}}", silent=b"there"):
        base = at
    changed = git(*_CHANGED, base)
    since_head = changed if base == at else git(*_CHANGED, at)
    return Repository(
        root=root,
        base=base,
        head=at,
        changes=None if changed is None else digests(root, changed),
        branch=_branch(root),
        time=when(seconds),
        modified=None if since_head is None else bool(since_head),
    )


def when(seconds: str) -> str | None:
    """ISO 8601 in UTC, of seconds since 1970."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _branch(root: str) -> str | None:
    """Read from git's own file, which costs no process; None if a commit is checked out without a branch."""
    try:
        folder = Path(root, ".git")
        if folder.is_file():  # a worktree or submodule: `gitdir: PATH`
            folder = Path(root, folder.read_text().partition("gitdir: ")[2].strip())
        head = (folder / "HEAD").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
    return redact_text(head.removeprefix("ref: refs/heads/")) if head.startswith("ref: refs/heads/") else None


def digests(root: str, listed: bytes) -> dict[str, str] | None:
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    if len(names) > _MOST_CHANGED:
        return None
    return {name.encode("utf-8", "replace").decode(): digest_of(os.path.join(root, name)) for name in names}


def _git(
    root: str, deadline: float, variables: Mapping[str, str], *words: str, silent: bytes | None = None
) -> bytes | None:
    """Its output (`silent` where it prints nothing); None if it failed or took too long."""
    printed = call([*GIT, *words], root, deadline, variables)
    return None if printed is None else printed or silent or b""


def call(argv: Sequence[str], folder: str, deadline: float, variables: Mapping[str, str] | None = None) -> bytes | None:
    """Its output; None if it failed or took too long. `variables`: its environment, if not that of git without a network."""
    import subprocess

    try:
        done = subprocess.run(
            argv,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**(variables or git_variables(os.environ, network=False)), "LC_ALL": "C"},
            timeout=max(0.05, deadline - time.monotonic()),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


_MOST_SAID = 8


def provenance_of(
    plan: Plan, kinds: Kinds, variables: Sequence[str] = (), before: Provenance | None = None
) -> Provenance:
    """The run's dependencies now; repositories are compared with the same commits as in `before`."""
    also = {b.name: kinds(b).code_files(b) for b in plan.benchmarks}
    first: dict[str, Job] = {}
    for jobs in plan.launches:
        first.setdefault(jobs[0].benchmark, jobs[0])
    search_path = os.environ.get("PATH", os.defpath)
    paths = dict.fromkeys(path for name, job in first.items() for path in code_files(job, also[name], search_path))
    tools = {path for job in first.values() for path in tool_files(job, search_path)}
    known = _known_sums(plan.benchmarks, kinds)
    editable = editable_packages(f for python in interpreters_of(plan) for f in site_folders(Path(python)))
    bases = {r.root: r.base for r in before.repositories} if before is not None else None
    return Provenance(
        files={path.encode("utf-8", "replace").decode(): known.get(path) or digest_of(path) for path in paths},
        repositories=repositories_of(
            dict.fromkeys(job.cwd for job in first.values()), bases, editable, [p for p in paths if p not in tools]
        ),
        variables=kept_variables(os.environ, also=variables),
        packages=environments_of((), plan),
    )


def _known_sums(benchmarks: Sequence[Benchmark], kinds: Kinds) -> dict[str, str]:
    """Of files that were verified just now."""
    of_kinds: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        of_kinds.setdefault(benchmark.kind, []).append(benchmark)
    return {path: known for some in of_kinds.values() for path, known in kinds(some[0]).known_sums(some).items()}


def history_of_new(plan: Plan, kinds: Kinds, variables: Sequence[str]) -> History:
    return History(began=provenance_of(plan, kinds, variables))


def history_of_resumed(
    folder: RunFolder, plan: Plan, kinds: Kinds, variables: Sequence[str], *, anyway: bool
) -> History:
    """The history of a resumed run; InvalidInput if what it depends on changed, unless `anyway`.

    If no launch was complete, or all were, nothing can be mixed.
    """
    jobs = [job for together in plan.launches for job in together]
    complete = tuple(job.id for job in jobs if is_complete(job.stream))
    history = folder.read_history()
    if not complete:
        return history_of_new(plan, kinds, variables)
    if history is None:
        found = ["what it was started with is unknown (provenance.json is missing or damaged)"]
        history = History(began=Provenance())
        now = provenance_of(plan, kinds, variables)
    else:
        now = provenance_of(plan, kinds, variables, history.newest)
        found = differences(history.newest, now)
    if not found or len(complete) == len(jobs):
        return history
    if not anyway:
        raise _refused(folder, found)
    when = datetime.now().astimezone().isoformat(timespec="seconds")
    resumption = Resumption(when=when, differences=tuple(found), before=complete, provenance=now)
    return msgspec.structs.replace(history, resumed=(*history.resumed, resumption))


def _refused(folder: RunFolder, found: Sequence[str]) -> InvalidInput:
    more = f"; and {len(found) - _MOST_SAID} more" if len(found) > _MOST_SAID else ""
    return InvalidInput(
        f"{folder.id} was started with something else: " + "; ".join(found[:_MOST_SAID]) + more,
        where="--resume",
        remedy="undo the change, start a new run, or continue with --anyway, which marks the results as mixed",
    )
