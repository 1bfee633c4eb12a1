"""What launches that took turns may tell: only what others did not have a part in."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.domain.job import Job
from benchwright.domain.measurement import Measurement
from benchwright.domain.status import Reason, Status
from benchwright.recorder.loops import LoopRecord
from benchwright.recorder.verdict import Verdict

_SHARED = ("cpu.", "gpu.", "energy.", "process.duration")  # over time in which others ran
_BY_WATCHING = ("sampler", "process")


def takes_turns(job: Job) -> bool:
    return job.barrier is not None and job.barrier.turn_s is not None


def own_only(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Without what was watched from outside over time in which it was somebody else's turn."""
    return [m for m in measurements if not (m.source in _BY_WATCHING and m.metric.startswith(_SHARED))]


def judge_turns(counting: Sequence[LoopRecord]) -> Verdict | None:
    """A program that took no turn ran while the others did, and is no measurement of anything."""
    if any((record.stop or {}).get("turns") for record in counting):
        return None
    detail = (
        "it took no turn, so it ran at the same time as the others: no loop of it is instrumented, or none was measured"
    )
    return Verdict(Status.FAILED, Reason.INVALID, f"{detail}; use benchprobe.iterate, or leave --turns out")
