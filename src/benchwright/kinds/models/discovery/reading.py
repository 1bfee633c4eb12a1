"""What a script reported while its models were looked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job, Outcome
from benchwright.core.model import FoundModel, ModelScript, ScriptDiscovery
from benchwright.core.numbers.quantities import format_duration
from benchwright.core.status import Reason
from benchwright.record.reading import Event, is_complete, read_events
from benchwright.record.verdict import signal_name

_LOG_LINES = 8


def read_discovery(script: Benchmark, job: Job, outcome: Outcome) -> ScriptDiscovery:
    """What the search of `script` by `job` found."""
    from benchwright.kinds.models.script_notes import read_notes
    from benchwright.runs.logs import tail_texts

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
