"""The models that a script's events report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from benchwright.core.job import Outcome
from benchwright.core.model import FoundModel, ScriptDiscovery
from benchwright.record.verdict import signal_name

Event = dict[str, Any]


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
