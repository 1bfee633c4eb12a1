"""What a run's numbers depend on: recorded at its start, and compared when it is resumed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job
from benchwright.core.results.provenance import History, Provenance, Resumption, differences
from benchwright.core.run import Plan
from benchwright.core.secrets.kept_variables import kept_variables
from benchwright.record import is_complete
from benchwright.runs.base import Kinds
from benchwright.runs.provenance.code_files import code_files, tool_files
from benchwright.runs.provenance.file_digests import digest_of
from benchwright.runs.provenance.git_state import repositories_of
from benchwright.runs.provenance.packages import editable_packages, environments_of, interpreters_of, site_folders
from benchwright.runs.run_folder import RunFolder

_MOST_SAID = 8


def provenance_of(
    plan: Plan, kinds: Kinds, keep_env: Sequence[str] = (), before: Provenance | None = None
) -> Provenance:
    """What the run depends on now; repositories are compared with the same commits as in `before`."""
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
        variables=kept_variables(os.environ, also=keep_env),
        packages=environments_of((), plan),
    )


def _known_sums(benchmarks: Sequence[Benchmark], kinds: Kinds) -> dict[str, str]:
    """Of files that were verified just now."""
    of_kinds: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        of_kinds.setdefault(benchmark.kind, []).append(benchmark)
    return {path: known for some in of_kinds.values() for path, known in kinds(some[0]).known_sums(some).items()}


def history_of_new(plan: Plan, kinds: Kinds, keep_env: Sequence[str]) -> History:
    return History(began=provenance_of(plan, kinds, keep_env))


def history_of_resumed(
    folder: RunFolder, plan: Plan, kinds: Kinds, keep_env: Sequence[str], *, anyway: bool
) -> History:
    """The history of a resumed run; InvalidInput if what it depends on changed, unless `anyway`.

    If no launch was complete, or all were, nothing can be mixed.
    """
    jobs = [job for together in plan.launches for job in together]
    complete = tuple(job.id for job in jobs if is_complete(job.stream))
    history = folder.read_history()
    if not complete:
        return history_of_new(plan, kinds, keep_env)
    if history is None:
        found = ["what it was started with is unknown (provenance.json is missing or damaged)"]
        history = History(began=Provenance())
        now = provenance_of(plan, kinds, keep_env)
    else:
        now = provenance_of(plan, kinds, keep_env, history.newest)
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
