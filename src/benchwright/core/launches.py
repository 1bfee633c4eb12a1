"""Several launches together: the jobs that ran together, whether they count, how long they overlapped, their notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from benchwright.core.note import Note
from benchwright.core.run import Launch, culprit
from benchwright.core.status import Reason, Status


def by_position(launches: Iterable[Launch]) -> dict[int, list[Launch]]:
    """The jobs of each launch, in the order the launches ran."""
    together: dict[int, list[Launch]] = {}
    for launch in sorted(launches, key=lambda x: x.position):
        together.setdefault(launch.position, []).append(launch)
    return together


def only_whole(launches: Sequence[Launch], planned: Mapping[int, int] | None = None) -> tuple[Launch, ...]:
    """The same jobs; a successful one next to a failed or missing one is marked as failed, with the reason.

    A launch of several jobs counts whole or not at all: next to a dead job, the others ran under a different load.
    `planned`: the number of jobs of the launch at each position; None: as many as there are. A worker that reports nothing
    loses its peer when the one that reports has been measured enough: how it then ends does not matter.
    """
    launches = [_excused(x, launches) for x in launches]
    together = by_position(launches)
    expected = {position: len(jobs) for position, jobs in together.items()} | dict(planned or {})
    return tuple(_marked(x, together[x.position], expected[x.position]) for x in launches)


def _excused(launch: Launch, launches: Sequence[Launch]) -> Launch:
    if launch.reports or launch.reason not in (Reason.CRASHED, Reason.SIGNALLED):
        return launch
    peers = [x for x in launches if x.position == launch.position and x.reports]
    if not peers or not all(x.status is Status.OK and x.measured_enough for x in peers):
        return launch
    return replace(launch, status=Status.OK, reason=None, detail=None)


def _marked(launch: Launch, jobs: Sequence[Launch], expected: int) -> Launch:
    if launch.status is not Status.OK or (len(jobs) == expected and all(job.status is Status.OK for job in jobs)):
        return launch
    measured = [replace(job, warmup=False) for job in jobs]
    bad = culprit(measured) or next((job for job in measured if job.status is not Status.OK), None)
    if bad is not None and bad.status is Status.FAILED:
        reason = f"{bad.reason.words}: " if bad.reason else ""
        text = f"does not count: {bad.job}, which ran alongside, failed ({reason}{bad.detail or 'no reason given'})"
        return replace(launch, status=Status.FAILED, reason=Reason.PARTNER_FAILED, detail=text)
    which = bad.job if bad is not None else "a job"
    text = f"does not count: {which} of the same launch did not finish"
    return replace(launch, status=Status.INTERRUPTED, reason=Reason.STOPPED, detail=text)


def overlap(launches: Sequence[Launch]) -> float | None:
    """The share of the measured time in which all of these jobs ran; None if the times are unknown.

    A job that has been measured runs on until the last one has: that counts as running.
    """
    spans = [span for launch in launches if (span := launch.facts.get("measured_ns"))]
    if len(spans) < 2 or len(spans) < len(launches):
        return None
    ends = [launch.facts.get("ran_on_until_ns", span[1]) for launch, span in zip(launches, spans, strict=True)]
    all_began, first_gone = max(start for start, _ in spans), min(ends)
    measured = sum(end - start for start, end in spans)
    shared = sum(max(0, min(end, first_gone) - max(start, all_began)) for start, end in spans)
    return shared / measured if measured > 0 else None


def worst_overlap(launches: Sequence[Launch]) -> float | None:
    """The smallest overlap of all launches; None if no jobs ran together."""
    shares = [share for jobs in by_position(launches).values() if (share := overlap(jobs)) is not None]
    return min(shares, default=None)


def noted_of(launches: Sequence[Launch]) -> list[Note]:
    """The notes of all launches, each once, with how many launches have it and the worst evidence. Warm-up is left out."""
    measured = [x for x in launches if not x.warmup]
    same: dict[str, list[Note]] = {}
    for launch in measured:
        for note in launch.notes:
            same.setdefault(note.text, []).append(note)
    return [replace(notes[0], evidence=_evidence(notes, len(measured))) for notes in same.values()]


def worst_evidence(notes: Sequence[Note]) -> str | None:
    """Evidence begins with its figure, and the smallest is the worst."""
    return min((note.evidence for note in notes if note.evidence), default=None)


def _evidence(notes: Sequence[Note], launches: int) -> str | None:
    share = None if launches == 1 else f"{len(notes)} of {launches} launches"
    return ", ".join(filter(None, (share, worst_evidence(notes)))) or None
