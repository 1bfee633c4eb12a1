"""How far processes that were to be measured together were."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.run import Launch


def overlap(launches: Sequence[Launch]) -> float | None:
    """Of the time in which these jobs were measured, the share in which all of them ran; None without such times.

    A job that was measured enough runs on, unmeasured, until the last one is: that counts as running.
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
    """The smallest one, of launches whose jobs ran together; None if no two did."""
    together: dict[int, list[Launch]] = {}
    for launch in launches:
        together.setdefault(launch.position, []).append(launch)
    shares = [share for jobs in together.values() if (share := overlap(jobs)) is not None]
    return min(shares, default=None)
