"""Runs a script once to find its models."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotMeasure, Interrupted
from benchwright.core.job import Job, Outcome
from benchwright.core.model import FoundModel, ModelScript, ScriptDiscovery
from benchwright.core.quantities import format_duration
from benchwright.core.status import Reason
from benchwright.executors.base import Executor
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer, usable_cores
from benchwright.kinds.models.discovery.kept import KeptDiscoveries
from benchwright.kinds.models.script import ScriptKind
from benchwright.kinds.models.script_notes import read_notes
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan
from benchwright.record.stream_file import Event, is_complete, read_events
from benchwright.record.verdict import signal_name
from benchwright.runs.base_folder import BaseFolder
from benchwright.runs.logs import tail_texts

# What a script reported while its models were looked for.


_LOG_LINES = 8


def read_discovery(script: Benchmark, job: Job, outcome: Outcome) -> ScriptDiscovery:
    """Models that the search of `script` by `job` found."""
    assert isinstance(script.workload, ModelScript)
    try:
        events = list(read_events(job.stream))
    except OSError:
        events = []
    discovery = record_discovery(events, script.source, outcome)
    if lost := _why_lost(job, outcome):
        discovery = msgspec.structs.replace(discovery, reason=lost)
    notes = read_notes(Path(script.workload.path))
    log = tail_texts(Path(job.log).parent, [job.id], _LOG_LINES).get(job.id, []) if discovery.trouble else []
    return msgspec.structs.replace(discovery, labels=notes.labels, source_note=notes.docstring, log=tuple(log))


def _why_lost(job: Job, outcome: Outcome) -> Reason | None:
    """Why the search did not end, if that is not the script's doing; a resumed run repeats it then."""
    if outcome.stopped or is_complete(job.stream):
        return None
    return Reason.DISK_FULL if outcome.disk_full else Reason.AGENT_LOST


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
        reason=_reason(outcome),
        notes=tuple(dict.fromkeys(notes)),
        parameters=dict(last.get("parameters") or {}),
        optimizer_steps=int(last.get("optimizer_steps") or 0),
        frameworks=tuple(map(str, last.get("frameworks") or ())),
        modules=tuple(map(str, last.get("modules") or ())),
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
        return f"it was still running after {format_duration(outcome.duration_s)} and was ended; --find-timeout gives it longer"
    if outcome is not None and outcome.signal is not None:
        return outcome.detail or f"it was killed by {signal_name(outcome.signal)}"
    if last.get("exception"):
        return str(last["exception"])
    if outcome is not None and outcome.exit_code:
        return outcome.detail or f"it ended with exit code {outcome.exit_code}"
    if outcome is not None and outcome.exit_code is None:
        return outcome.detail or "it could not be started"
    return None


def _reason(outcome: Outcome | None) -> Reason | None:
    """How the process of a script ended, if not well."""
    if outcome is None or (outcome.exit_code == 0 and not outcome.timed_out):
        return None
    if outcome.timed_out:
        return Reason.TIMED_OUT
    if outcome.out_of_memory:
        return Reason.OUT_OF_MEMORY
    return Reason.CRASHED if outcome.signal is None else Reason.SIGNALLED


class ScriptLauncher:
    """Starts the processes that look for models, one at a time: nothing is measured meanwhile."""

    def __init__(self, options: Options, base: BaseFolder, executor: Executor, observer: Observer) -> None:
        self._options = options.launched(1, interleave=False)
        self._base = base
        self._executor = executor
        self._observer = observer
        self._launched = 0

    def run(
        self, script: Benchmark, folder: Path, *, goes_on: bool = False, count_work: bool = False
    ) -> ScriptDiscovery:
        """Models that the script called; its events and its output go to `folder`.

        `goes_on`: others follow. `count_work`: it also counts the models' arithmetic, which calls them again.
        """
        folder.mkdir(exist_ok=True)
        plan = make_plan(
            [_limited(script, self._options.find_timeout)],
            self._executor.machine(),
            msgspec.structs.replace(self._options, show_output=self._options.show_output and not count_work),
            lambda benchmark: ScriptKind(),
            folder=str(folder),
            probe_path=str(probe_folder(self._base.artifacts, self._observer.on_trouble, ScriptKind.probe_packages)),
            usable_cores=usable_cores(self._executor.machine()),
            count_work=count_work,
            goes_on=goes_on or self._launched > 0,
        )
        self._launched += 1
        if script.name in plan.skipped:
            reason, text = plan.skipped[script.name]
            return ScriptDiscovery(script=script.source, models=(), exit_code=None, trouble=text, reason=reason)
        (job,) = plan.launches[0]
        for ending in (".data", ".log", ".log.gz"):  # of a search that was interrupted
            Path(job.stream).with_suffix(ending).unlink(missing_ok=True)
        (outcome,) = self._executor.run([job], self._observer)
        return read_discovery(script, job, outcome)


def _limited(script: Benchmark, limit_s: float) -> Benchmark:
    """With the time limit of a search, unless its own is shorter."""
    return msgspec.structs.replace(script, timeout_s=min(limit_s, script.timeout_s or limit_s))


def discover(
    benchmarks: Sequence[Benchmark], options: Options, base: BaseFolder, executor: Executor, observer: Observer
) -> dict[str, ScriptDiscovery]:
    """Runs each script of `benchmarks`; what was found, by name. Interrupted if asked to stop.

    A script that calls models is run a second time to count their arithmetic: counting in the first run would falsify it.
    What an earlier search found is taken from there, unless the script's output is to be seen.
    """
    scripts = [b for b in benchmarks if isinstance(b.workload, ModelScript)]
    launcher = ScriptLauncher(options, base, executor, observer)
    earlier = KeptDiscoveries(base.builds, options, executor.machine())
    aside = folder_aside(base)
    found: dict[str, ScriptDiscovery] = {}
    try:
        with stops_on_signals(executor.stop, second_ends=True) as stopped:
            for number, script in enumerate(scripts, start=1):
                kept = None if options.show_output else earlier.of(script)
                if kept is not None and not _lacks_work(kept):
                    found[script.name] = kept
                    continue
                observer.on_discovery(number, len(scripts), script)
                discovery = kept or launcher.run(script, aside, goes_on=number < len(scripts))
                if not stopped() and _lacks_work(discovery):
                    discovery = _with_work(discovery, launcher.run(script, aside / "work", count_work=True))
                refuse_if_stopped(stopped)
                earlier.keep(script, msgspec.structs.replace(discovery, searched=None))
                found[script.name] = discovery
                observer.on_discovered(script, discovery)
        return found
    finally:
        remove_folder(aside)


def _lacks_work(discovery: ScriptDiscovery) -> bool:
    """Whether the arithmetic of its models is still to be counted; a run does not."""
    return any(model.measurable and model.flops is None and not model.flops_note for model in discovery.models)


def refuse_if_stopped(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Interrupted("stopped while looking for models; nothing has been measured yet")


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


def folder_aside(base: BaseFolder) -> Path:
    """A new folder for what scripts report before there is a run folder."""
    try:
        base.builds.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=base.builds, prefix=".discovery-"))
    except OSError as error:
        raise CannotMeasure(f"{base.builds}: {error.strerror or error}; choose another folder with --base") from error


def remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
