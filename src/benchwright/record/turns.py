"""Launches that took turns: only measurements that exclude the others' turns count."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.job import Job
from benchwright.core.measurement import Measurement
from benchwright.core.metric import describes_work
from benchwright.core.note import Note
from benchwright.core.status import Reason, Status
from benchwright.record.loops.loops import LoopRecord
from benchwright.record.verdict import LaunchVerdict

_SHARED = ("cpu.", "gpu.", "energy.", "process.duration", "process.gpu_time")  # over time in which others ran
_BY_WATCHING = ("sampler", "process")


def takes_turns(job: Job) -> bool:
    return job.barrier is not None and job.barrier.turn_s is not None


def own_only(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Without values sampled, or computed by the program, over time that includes others' turns."""
    kept = [m for m in measurements if m.source != "give" or _is_own(m)]
    return [m for m in kept if not (m.source in _BY_WATCHING and m.metric.startswith(_SHARED))]


def _is_own(given: Measurement) -> bool:
    """Whether a given value cannot depend on time: a loss, or a description of the workload."""
    name = given.metric.rpartition(".")[2]
    return name == "loss" or describes_work(given.metric)


def left_out(measurements: Sequence[Measurement]) -> list[Note]:
    """Values that a program computed itself may include the others' turns."""
    names = sorted({m.metric for m in measurements if m.source == "give" and not _is_own(m)})
    text = "left out because they may include pauses between turns: "
    return [Note(text=text + ", ".join(names), severity="info")] if names else []


def judge_turns(counting: Sequence[LoopRecord]) -> LaunchVerdict | None:
    """A program that took no turns ran alongside the others, so its measurement is invalid."""
    if any((record.stop or {}).get("turns") for record in counting):
        return None
    detail = "it took no turns and ran alongside the others: it has no instrumented loop, or none was measured"
    return LaunchVerdict(Status.FAILED, Reason.INVALID, f"{detail}; use benchprobe.iterate, or leave --turns out")
