"""Which unfinished run to resume, and whether it may be resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from benchwright.core.aggregates import WORKERS_VARIABLE
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.machine import Machine
from benchwright.core.status import Reason, Status
from benchwright.options.table import Options
from benchwright.runs.fan_out_folder import FAN_OUT
from benchwright.runs.known_runs import all_runs, find_run
from benchwright.runs.run_folder import RunFolder
from benchwright.runs.stored_plan import StoredPlan

_REPEATED = {Reason.AGENT_LOST.value, Reason.DISK_FULL.value, Reason.STOPPED.value}
NEWEST = "newest"  # resume the newest unfinished run of the same target


def to_resume(
    runs: Path, resume: str, benchmarks: tuple[Benchmark, ...], options: Options
) -> tuple[RunFolder, StoredPlan]:
    """The run to resume. What it measures must not have changed."""
    if resume != NEWEST:
        folder = find_run(runs, resume)
        stored = folder.read_plan()
        if benchmarks and (differences := stored.differences(benchmarks, options)):
            raise InvalidInput(
                f"{folder.id} measures something else: " + "; ".join(differences[:5]),
                where="--resume",
                remedy="resume it without a target, or start a new run",
            )
        return folder, _completed(stored, benchmarks, options)
    unfinished = unfinished_runs(runs)
    for folder, stored in unfinished:
        if not benchmarks or stored.same_target(benchmarks, options):
            return folder, _completed(stored, benchmarks, options)
    if unfinished:
        newest, stored = unfinished[0]
        raise InvalidInput(
            f"no unfinished run measures exactly this; the newest unfinished one, {newest.id}, differs: "
            + "; ".join(stored.differences(benchmarks, options)[:5]),
            where="--resume",
            remedy="undo the change, or start a new run",
        )
    raise InvalidInput(
        f"there is no unfinished run in {runs}", where="--resume", remedy="list runs with 'benchwright runs'"
    )


def unfinished_runs(runs: Path) -> list[tuple[RunFolder, StoredPlan]]:
    """Newest first. A run whose plan is damaged cannot be resumed and is skipped, and so is one of several nodes: they are
    resumed together."""
    found = []
    for folder in all_runs(runs):
        if _is_unfinished(folder):
            with suppress(InvalidInput):
                found.append((folder, folder.read_plan()))
    return [(folder, stored) for folder, stored in found if FAN_OUT not in stored.labels]


def _completed(stored: StoredPlan, benchmarks: tuple[Benchmark, ...], options: Options) -> StoredPlan:
    """The stored plan, plus what is not stored: secrets (from the target, if named again) and how output is shown."""
    again = {b.name: b for b in benchmarks}
    scripts = {_script_of(b): b for b in benchmarks if b.workload.finds_models}
    complete = replace(
        stored,
        benchmarks=tuple(_with_secrets(b, again.get(b.name), scripts) for b in stored.benchmarks),
        asked=tuple(again.get(b.name, b) for b in stored.asked),
        options=stored.options.shown_as(options),
    )
    check_workers(complete.benchmarks, complete.options)
    if not benchmarks and stored.left_out:
        raise InvalidInput(
            f"{', '.join(stored.left_out)}: secrets are not stored",
            where="--resume",
            remedy="resume with the same target and options as before, secrets included",
        )
    return complete


def _script_of(benchmark: Benchmark) -> tuple[str | None, str | None, str]:
    """The key shared by a model and the script it was found in."""
    return benchmark.workload.script, benchmark.side, str(sorted(benchmark.parameters.items()))


def _with_secrets(
    stored: Benchmark, again: Benchmark | None, scripts: Mapping[tuple[str | None, str | None, str], Benchmark]
) -> Benchmark:
    """As it is named again; a model, with the environment and arguments of its script as that is named again."""
    if again is not None and (stored.is_open or not again.workload.finds_models):
        return again
    script = scripts.get(_script_of(stored))
    return stored if script is None else stored.started_as(script)


def _is_unfinished(folder: RunFolder) -> bool:
    body = folder.read_run() or {}
    finished = body.get("ended") is not None and body.get("status") != Status.INTERRUPTED.value
    return (not finished or _would_repeat(body)) and not folder.is_busy()


def _would_repeat(body: dict[str, object]) -> bool:
    """Whether run.json, which may have been edited by hand, has a launch, or a search, that did not end by itself."""
    results = [r for r in _list(body.get("results")) if isinstance(r, dict)]
    launches = (x for r in results for x in _list(r.get("launches")))
    return any(isinstance(x, dict) and x.get("reason") in _REPEATED for x in (*results, *launches))


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def check_workers(benchmarks: Sequence[Benchmark], options: Options) -> None:
    """InvalidInput, before anything runs, if a metric needs the number of workers and that is unknown."""
    needing = [m.name for b in benchmarks for m in b.metrics if m.aggregate == "average_aggregate"]
    if needing and not options.workers:
        raise InvalidInput(
            f"'average_aggregate' of '{needing[0]}' multiplies by the number of workers, which is unknown",
            remedy=f"set {WORKERS_VARIABLE} to 1 or more",
        )


def refuse_other_machine(folder: RunFolder, machine: Machine) -> None:
    """A run must not be half from one machine and half from another."""
    began = folder.read_machine()
    if began is not None and began.fingerprint != machine.fingerprint:
        raise InvalidInput(
            f"{folder.id} was started on another machine ({began.hostname}: {began.cpu}, {began.cores} cores)",
            where="--resume",
            remedy="resume it there, or start a new run",
        )
