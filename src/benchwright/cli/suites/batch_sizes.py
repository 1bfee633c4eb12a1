"""`run --size search`, and what `--save-scaling` keeps."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.numbers.quantities import format_bytes

if TYPE_CHECKING:
    from benchwright.app.batch_search import BatchSearch, Trial
    from benchwright.core.request import Request
    from benchwright.core.run import Run
    from benchwright.core.settings import RunSettings
    from benchwright.executors.observer import Observer
    from benchwright.runs.base_folder import BaseFolder

SEARCH = "search"


def search_batches(request: Request, base: BaseFolder, observer: Observer, *, as_json: bool) -> int:
    """Looks for the largest batch of every benchmark whose size is for us to choose; each trial is a run of its own."""
    from msgspec.structs import replace

    from benchwright.app.batch_search import default_batch, find_and_save, suite_trials
    from benchwright.app.resolve import resolve
    from benchwright.plan.suite.batch_search import Bounds

    asked = request.suite
    assert asked is not None
    request = replace(request, suite=replace(asked, size=None))
    resolved = resolve(request)
    starts = {b.name: start for b in resolved.benchmarks if b.enabled and (start := default_batch(b)) is not None}
    if not starts:
        raise InvalidInput(
            "no benchmark leaves its batch size to be chosen", where="--size", remedy="write auto_batch(N) in its argv"
        )
    file = Path(asked.save_scaling or asked.scaling_file or base.path / "extra" / "scaling.yaml")
    sizing = resolved.settings.suite_paths.sizing if resolved.settings.suite_paths else None
    multiple = sizing.multiple if sizing is not None else 8
    found: list[BatchSearch] = []
    for name, start in starts.items():
        bounds = Bounds(start=start, multiple=multiple)
        trials = suite_trials(request, base, observer)
        found += find_and_save([name], trials, file, bounds=bounds, cpu=os.cpu_count(), on_trial=_tell)
    if as_json:
        click.echo(json.dumps({"scaling_file": str(file), "searches": [_body(s) for s in found]}, indent=1))
    else:
        for search in found:
            click.echo(_words(search))
        click.echo(f"saved: {file}; use it with --size auto --scaling {file}")
    return 1 if any(search.problem for search in found) else 0


def save_scaling(run: Run, settings: RunSettings) -> str | None:
    """What this run saw of memory over batch size goes to the file it was told; a sentence about it, or None.

    A file that cannot be written costs nothing else: the run is complete.
    """
    paths = settings.suite_paths
    if paths is None or not paths.sizing.save:
        return None
    from benchwright.kinds.registry import kind_of
    from benchwright.kinds.suite.scaling import observations_of
    from benchwright.runs.read_run import plan_of
    from benchwright.runs.run_folder import RunFolder
    from benchwright.runs.scaling_file import add_observations

    try:
        found = observations_of(run, plan_of(RunFolder(Path(run.folder)), kind_of))
        if not found:
            return f"nothing was added to {paths.sizing.save}: no benchmark was given a batch size by auto_batch"
        saved = add_observations(paths.sizing.save, found)
    except (BenchwrightError, OSError) as error:
        return f"{run.id} is complete, but its batch sizes are not saved: {error}"
    count = f"{saved.observations} observation{'' if saved.observations == 1 else 's'}"
    comments = "; comments in it were dropped" if saved.lost_comments else ""
    return f"{count} added to {saved.path}{comments}"


def _tell(benchmark: str, size: int, trial: Trial) -> None:
    word = "fits" if trial.fits else "does not fit" if not trial.failed else "failed"
    memory = "" if trial.memory_bytes is None else f", {format_bytes(trial.memory_bytes)}"
    click.echo(f"{benchmark}: batch {size} {word}{memory}", err=True)


def _words(search: BatchSearch) -> str:
    largest = "no batch fits" if search.largest is None else f"largest batch that fits: {search.largest}"
    return f"{search.benchmark}: {largest}" + (f" ({search.problem})" if search.problem else "")


def _body(search: BatchSearch) -> dict[str, object]:
    return {
        "benchmark": search.benchmark,
        "largest": search.largest,
        "problem": search.problem,
        "trials": [
            {"batch_size": size, "fits": t.fits, "memory_bytes": t.memory_bytes, "perf": t.perf, "detail": t.detail}
            for size, t in search.trials.items()
        ],
    }
