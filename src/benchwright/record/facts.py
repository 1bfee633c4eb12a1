"""What is stored of a launch besides its measurements."""

from __future__ import annotations

from typing import Any

from benchwright.core.events.voir import LEFT
from benchwright.core.job import Job
from benchwright.core.secrets.redact import redact_body
from benchwright.record.fold import Fold
from benchwright.record.loops.loops import AFTER, LoopRecord, settled
from benchwright.record.reading import Event
from benchwright.record.samples import Span
from benchwright.record.voir_rates import VoirMeasured

_STOP_FACTS = ("rule", "steps", "detail", "by", "turn_s", "turns", "paused_ns")


def facts_of(
    fold: Fold, counting: list[LoopRecord], span: Span | None, through_voir: VoirMeasured, job: Job
) -> dict[str, object]:
    facts: dict[str, object] = {"started": fold.start.get("pid") is not None} | redact_body(fold.gatherer.facts())
    if fold.start.get("warm"):
        facts["warm"] = True  # forked from a process that had imported what it needs
    if fold.voir.lines:
        wall = [(event or {}).get("wall") for event in (fold.start, fold.end)]  # seconds since 1970
        facts["voir"] = through_voir.facts | {"wall": wall}
    if fold.end is not None and fold.end.get("usage"):
        facts["usage"] = fold.end["usage"]
    if span is not None:
        facts["measured_ns"] = span
        ran_on = [r.phases[AFTER].last_ns for r in counting if r.phases[AFTER].first_ns is not None]
        ran_on += [t for t in (_left_ns(fold),) if t is not None]
        if ran_on:  # unmeasured, so that the others are measured under the same load
            facts["ran_on_until_ns"] = max(span[1], min(ran_on))
    if probes := [event for event in fold.probes.values() if _names_its_python(event)]:
        facts["python"] = {k: probes[0].get(k) for k in ("python", "executable", "prefix", "path", "version")}
    if counting:
        facts["loops"] = [
            {
                "name": r.name,
                "rank": r.rank,
                "on_device": r.on_device,
                **({"device_stride": r.device_stride} if r.device_stride > 1 else {}),
                "steps": {phase: len(steps) for phase, steps in r.phases.items()},
                "items": (measured := settled(r)[0]).items.total,
                "seconds": measured.total_s,
                "host_s": measured.host_ns * 1e-9,
                "outside_s": fold.outside.bounds_s(r.key),
                "warmup": (r.measure or {}).get("warmup"),
                "stop": {k: v for k, v in (r.stop or {}).items() if k in _STOP_FACTS} or None,
            }
            for r in counting
        ]
    return _comparable(facts, fold, job)


def _comparable(facts: dict[str, Any], fold: Fold, job: Job) -> dict[str, object]:
    """With several nodes, times become times of day: their monotonic clocks are unrelated."""
    if job.node == "localhost" or fold.voir.began is None:
        return facts
    began_ns, wall_s = fold.voir.began
    shift_ns = round(wall_s * 1e9) - began_ns
    if "measured_ns" in facts:
        facts["measured_ns"] = tuple(t + shift_ns for t in facts["measured_ns"])
    if "ran_on_until_ns" in facts:
        facts["ran_on_until_ns"] += shift_ns
    return facts


def _left_ns(fold: Fold) -> int | None:
    """When a script run by voir and measured together with others left or was ended."""
    if LEFT in fold.voir.marks:
        return fold.voir.marks[LEFT][0]
    end = fold.end or {}
    return end["t"] if end.get("early_stop") and isinstance(end.get("t"), int) else None


def _names_its_python(event: Event) -> bool:
    """Whether benchprobe wrote this, not somebody else."""
    path = event.get("path")
    return isinstance(event.get("executable"), str) and isinstance(path, list) and all(isinstance(p, str) for p in path)
