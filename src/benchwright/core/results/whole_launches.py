"""A launch of several jobs counts whole or not at all: beside a dead job, the others were measured under another load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from benchwright.core.run import Launch, culprit
from benchwright.core.status import Reason, Status


def only_whole(launches: Sequence[Launch], planned: Mapping[int, int] | None = None) -> tuple[Launch, ...]:
    """The same jobs, those that ended well beside one that did not marked so that they do not count, with which and why.

    `planned`: how many jobs the launch at each position has; None: those that are there.
    """
    together: dict[int, list[Launch]] = {}
    for launch in launches:
        together.setdefault(launch.position, []).append(launch)
    expected = {position: len(jobs) for position, jobs in together.items()} | dict(planned or {})
    return tuple(_marked(x, together[x.position], expected[x.position]) for x in launches)


def _marked(launch: Launch, jobs: Sequence[Launch], expected: int) -> Launch:
    if launch.status is not Status.OK or (len(jobs) == expected and all(job.status is Status.OK for job in jobs)):
        return launch
    measured = [replace(job, warmup=False) for job in jobs]
    bad = culprit(measured) or next((job for job in measured if job.status is not Status.OK), None)
    if bad is not None and bad.status is Status.FAILED:
        why = f"{bad.reason.value.replace('_', ' ')}: " if bad.reason else ""
        said = f"{bad.job}, which ran alongside, failed ({why}{bad.detail or 'no reason given'}), so it does not count"
        return replace(launch, status=Status.FAILED, reason=Reason.PARTNER_FAILED, detail=said)
    which = bad.job if bad is not None else "a job"
    said = f"{which} of the same launch was not finished, so it does not count"
    return replace(launch, status=Status.INTERRUPTED, reason=Reason.STOPPED, detail=said)
