"""Runs scripts once to find their models, which become the benchmarks of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.benchmark import REVISION, Benchmark
from benchwright.core.errors import CannotMeasure, Interrupted
from benchwright.core.inputs.request import Resolved
from benchwright.core.job import Job, Outcome
from benchwright.core.model import FoundModel, ModelScript, ScriptDiscovery
from benchwright.core.settings import RunSettings
from benchwright.executors.base import Executor
from benchwright.executors.observer import Observer, usable_cores
from benchwright.executors.stopping import stops_on_signals
from benchwright.kinds.models.script import ScriptKind
from benchwright.plan.placement import make_plan
from benchwright.record.reading import Event, read_events
from benchwright.record.verdict import signal_name
from benchwright.runs.base_folder import BaseFolder

_LOG_LINES = 8


def is_open(benchmarks: Sequence[Benchmark]) -> bool:
    """Whether any is a script whose models are not known yet."""
    return any(isinstance(b.workload, ModelScript) for b in benchmarks)


@contextmanager
def with_models_found(
    resolved: Resolved, base: BaseFolder, executor: Executor, observer: Observer
) -> Iterator[tuple[Resolved, Path | None]]:
    """`resolved` with each script replaced by its models, and the folder with the scripts' events.

    The folder is removed at the end, unless the caller has moved it.
    """
    if not is_open(resolved.benchmarks):
        yield resolved, None
        return
    # Most runs need none of it.
    from benchwright.kinds.models.batches import with_batches_known
    from benchwright.kinds.models.benchmarks import with_idle_parameters_noted

    folder = _aside(base)
    try:
        found = discover(resolved.benchmarks, resolved.settings, base, executor, observer, folder=folder)
        found = with_batches_known(resolved.benchmarks, found)
        benchmarks: list[Benchmark] = []
        for benchmark in with_idle_parameters_noted(resolved.benchmarks, found):
            discovery = found.get(benchmark.name)
            benchmarks += [benchmark] if discovery is None else _models_of(benchmark, discovery, str(base.builds))
        yield msgspec.structs.replace(resolved, benchmarks=tuple(_unique(benchmarks))), folder
    finally:
        _remove(folder)


def _models_of(script: Benchmark, discovery: ScriptDiscovery, builds: str) -> list[Benchmark]:
    """Of a script that is one side of an A/B, each model is a pair of its own."""
    from benchwright.kinds.models.benchmarks import benchmarks_of

    if script.side is None:
        return benchmarks_of(script, discovery, builds)
    alone = msgspec.structs.replace(script, name=script.pair, pair="")
    found = benchmarks_of(alone, discovery, builds)
    return [b.on_side(script.side, script.labels[REVISION]) for b in found]


def discover(
    benchmarks: Sequence[Benchmark],
    settings: RunSettings,
    base: BaseFolder,
    executor: Executor,
    observer: Observer,
    *,
    folder: Path | None = None,
    count_work: bool = False,
) -> dict[str, ScriptDiscovery]:
    """Runs each script of `benchmarks`; what was found, by name. Interrupted if asked to stop.

    `count_work`: a script that calls models is run a second time to count their arithmetic. Counting calls them again, which
    would falsify the first run.
    """
    scripts = [b for b in benchmarks if isinstance(b.workload, ModelScript)]
    aside = folder or _aside(base)

    def launches(below: str, counting: bool) -> list[list[Job]]:
        (aside / below).mkdir(exist_ok=True)
        plan = make_plan(
            scripts,
            executor.machine(),
            msgspec.structs.replace(
                settings, repeat=1, warmup_runs=0, interleave=False, echo=settings.echo and not counting
            ),
            lambda benchmark: ScriptKind(),
            folder=str(aside / below),
            probe_path=str(probe_folder(base.artifacts, observer.on_trouble, ScriptKind.probe_packages)),
            usable_cores=usable_cores(executor.machine()),
            count_work=counting,
        )
        return [list(jobs) for jobs in plan.launches]

    try:
        again = launches("work", counting=True) if count_work else None
        found: dict[str, ScriptDiscovery] = {}
        with stops_on_signals(executor.stop, second_ends=True) as stopped:

            def told(script: Benchmark, jobs: list[Job]) -> ScriptDiscovery:
                outcomes = executor.run(jobs, observer)
                if stopped():
                    raise Interrupted("stopped while looking for models; nothing has been measured yet")
                return _read(script, jobs[0], outcomes[0])

            for number, (script, jobs) in enumerate(zip(scripts, launches("", counting=False), strict=True)):
                observer.on_discovery(number + 1, len(scripts), script)
                discovery = told(script, jobs)
                if again is not None and any(model.measurable for model in discovery.models):
                    discovery = _with_work(discovery, told(script, again[number]))
                found[script.name] = discovery
                observer.on_discovered(script, discovery)
        return found
    finally:
        if folder is None:
            _remove(aside)


def _read(script: Benchmark, job: Job, outcome: Outcome) -> ScriptDiscovery:
    from benchwright.kinds.models.script_notes import read_notes
    from benchwright.runs.logs import tail_texts

    assert isinstance(script.workload, ModelScript)
    try:
        events = list(read_events(job.stream))
    except OSError:
        events = []
    discovery = record_discovery(events, script.source, outcome)
    notes = read_notes(Path(script.workload.path))
    log = tail_texts(Path(job.log).parent, [job.id], _LOG_LINES).get(job.id, []) if discovery.trouble else []
    return msgspec.structs.replace(discovery, labels=notes.labels, source_note=notes.docstring, log=tuple(log))


def _with_work(discovery: ScriptDiscovery, counted: ScriptDiscovery) -> ScriptDiscovery:
    """With the arithmetic that the second run counted."""
    work = {model.identity: model for model in counted.models}

    def counted_in(model: FoundModel) -> FoundModel:
        other = work.get(model.identity)
        if other is None:
            note = "the script did not call it in the second run, which counts operations"
            return msgspec.structs.replace(model, flops_note=note) if model.measurable else model
        return msgspec.structs.replace(model, flops=other.flops, bytes=other.bytes, flops_note=other.flops_note)

    return msgspec.structs.replace(discovery, models=tuple(map(counted_in, discovery.models)))


def record_discovery(events: Iterable[Event], script: str, outcome: Outcome | None) -> ScriptDiscovery:
    """The models of one run of `script`, in the order of their first event; the last event of each counts."""
    models: dict[str, FoundModel] = {}
    last: Event = {}
    notes: list[str] = []
    for event in events:
        if event["event"] == "model":
            found = _model(event)
            if found is None:
                notes.append("a model entry could not be read")
            else:
                models[found.identity] = _merged(models.get(found.identity), found)
        elif event["event"] == "discovery_end" and (event.get("main_process", True) or not last):
            last = event
        elif event["event"] == "message" and event.get("severity") in ("warning", "error"):
            notes.append(str(event.get("text")))
    if last.get("hook_lost"):
        notes.append("the script replaced torch.nn.Module.__call__: models it called after that may be missing")
    if started := last.get("processes_started"):
        notes.append(f"the script started {started} other processes; models called there are not seen")
    return ScriptDiscovery(
        script=script,
        models=tuple(models.values()),
        ended=bool(last),
        exit_code=None if outcome is None else outcome.exit_code,
        trouble=_trouble(last, outcome),
        notes=tuple(dict.fromkeys(notes)),
        parameters=dict(last.get("parameters") or {}),
        optimizer_steps=int(last.get("optimizer_steps") or 0),
    )


def _model(event: Event) -> FoundModel | None:
    try:
        return msgspec.convert(event, FoundModel)
    except msgspec.ValidationError:
        return None


def _merged(before: FoundModel | None, found: FoundModel) -> FoundModel:
    """A call in the script's own process takes precedence over one in a child process."""
    if before is not None and before.main_process and not found.main_process:
        return before
    return found


def _trouble(last: Event, outcome: Outcome | None) -> str | None:
    """How the script failed, in words; None if it did not."""
    if outcome is not None and outcome.timed_out:
        return f"it was still running after {outcome.duration_s:.0f} s and was killed"
    if outcome is not None and outcome.signal is not None:
        return outcome.detail or f"it was killed by {signal_name(outcome.signal)}"
    if last.get("exception"):
        return str(last["exception"])
    if outcome is not None and outcome.exit_code:
        return outcome.detail or f"it ended with exit code {outcome.exit_code}"
    if outcome is not None and outcome.exit_code is None:
        return outcome.detail or "it could not be started"
    return None


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
    from benchwright.kinds.naming import with_unique_names

    return with_unique_names(benchmarks)
