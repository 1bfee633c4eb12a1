"""Scripts are run once to find their models; what they tell becomes the benchmarks of the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchwright.domain.benchmark import Benchmark
from benchwright.domain.errors import CannotMeasure, Interrupted
from benchwright.domain.job import Job, Outcome
from benchwright.domain.model import Discovery, ModelScript
from benchwright.domain.request import Resolved
from benchwright.domain.run import Run
from benchwright.domain.settings import RunSettings
from benchwright.environments.probe_folder import probe_folder
from benchwright.executors.base import Executor
from benchwright.pipeline.executor import executor_for
from benchwright.pipeline.measure import Observer, measure, usable_cores
from benchwright.pipeline.stopping import stops_on_signals
from benchwright.planning.placement import make_plan
from benchwright.stores.base_folder import BaseFolder

_LOG_LINES = 8


def is_open(benchmarks: Sequence[Benchmark]) -> bool:
    """Whether some of them are scripts whose models are still to be found."""
    return any(isinstance(b.workload, ModelScript) for b in benchmarks)


@contextmanager
def with_models_found(
    resolved: Resolved, base: BaseFolder, executor: Executor, observer: Observer
) -> Iterator[tuple[Resolved, Path | None]]:
    """The same with each model in the place of its script, and the folder that holds what the scripts told.

    The folder is gone afterwards, if nobody took it.
    """
    if not is_open(resolved.benchmarks):
        yield resolved, None
        return
    from benchwright.sources.found_models import benchmarks_of, with_idle_parameters_noted  # most runs need none of it

    folder = _aside(base)
    try:
        found = discover(resolved.benchmarks, resolved.settings, base, executor, observer, folder=folder)
        benchmarks: list[Benchmark] = []
        for benchmark in with_idle_parameters_noted(resolved.benchmarks, found):
            discovery = found.get(benchmark.name)
            benchmarks += [benchmark] if discovery is None else benchmarks_of(benchmark, discovery, str(base.builds))
        yield msgspec.structs.replace(resolved, benchmarks=tuple(_unique(benchmarks))), folder
    finally:
        _remove(folder)


def measured(
    resolved: Resolved,
    base: BaseFolder,
    observer: Observer,
    *,
    name: str | None = None,
    resume: str | None = None,
    labels: dict[str, str] | None = None,
) -> Run:
    """The run of what was resolved, with the models of its scripts found first; `name`: what to call it, if not by its target."""
    with (
        executor_for(resolved.settings, base, resume) as executor,
        with_models_found(resolved, base, executor, observer) as (complete, told),
    ):
        return measure(
            complete.benchmarks,
            complete.settings,
            base=base,
            name=name or complete.name,
            executor=executor,
            observer=observer,
            resume=resume,
            labels=labels,
            told=told,
        )


def discover(
    benchmarks: Sequence[Benchmark],
    settings: RunSettings,
    base: BaseFolder,
    executor: Executor,
    observer: Observer,
    *,
    folder: Path | None = None,
    count_work: bool = False,
) -> dict[str, Discovery]:
    """Runs each script of `benchmarks` and tells by name what was found; Interrupted if asked to stop."""
    scripts = [b for b in benchmarks if isinstance(b.workload, ModelScript)]
    aside = folder or _aside(base)
    try:
        plan = make_plan(
            scripts,
            executor.machine(),
            msgspec.structs.replace(settings, repeat=1, warmup_runs=0, interleave=False),
            folder=str(aside),
            probe_path=str(probe_folder(base.artifacts)),
            usable_cores=usable_cores(),
            count_work=count_work,
        )
        found: dict[str, Discovery] = {}
        with stops_on_signals(executor.stop, second_ends=True) as stopped:
            for number, (script, jobs) in enumerate(zip(scripts, plan.launches, strict=True), start=1):
                observer.on_discovery(number, len(scripts), script)
                outcomes = executor.run(jobs, observer)
                if stopped():
                    raise Interrupted("stopped while models were looked for; nothing was measured yet")
                found[script.name] = _read(script, jobs[0], outcomes[0])
                observer.on_discovered(script, found[script.name])
        return found
    finally:
        if folder is None:
            _remove(aside)


def _read(script: Benchmark, job: Job, outcome: Outcome) -> Discovery:
    from benchwright.recorder.discovery import record_discovery
    from benchwright.recorder.reading import read_events
    from benchwright.sources.script_notes import read_notes
    from benchwright.stores.logs import tail_texts

    assert isinstance(script.workload, ModelScript)
    try:
        events = list(read_events(job.stream))
    except OSError:
        events = []
    discovery = record_discovery(events, script.source, outcome)
    notes = read_notes(Path(script.workload.path))
    log = tail_texts(Path(job.log).parent, [job.id], _LOG_LINES).get(job.id, []) if discovery.trouble else []
    return msgspec.structs.replace(discovery, labels=notes.labels, source_note=notes.docstring, log=tuple(log))


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _aside(base: BaseFolder) -> Path:
    import tempfile

    try:
        base.builds.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=base.builds, prefix=".discovery-"))
    except OSError as error:
        raise CannotMeasure(f"{base.builds}: {error.strerror or error}; choose another folder with --base") from error


def _unique(benchmarks: list[Benchmark]) -> list[Benchmark]:
    from benchwright.sources.command_line import with_unique_names

    return with_unique_names(benchmarks)
