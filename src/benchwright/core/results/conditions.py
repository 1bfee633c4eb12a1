"""The conditions launches ran under, as far as recorded, and whether their results may decide a verdict.

Comparisons of separate runs, `vs eager` and reports all ask here, so that they agree on which launches were disturbed.
What was not recorded is None or absent, and counts neither for nor against a launch.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.note import Note
from benchwright.core.run import Launch

BLIND = "blind"  # no note says so: what a launch could not show, on a machine that was busy
# Kinds of Note that make a launch's time say as much about the machine as about the program.
DISTURBING = {
    "busy": "ran while the machine was busy",
    "throttled": "ran on a throttled GPU",
    "shared": "shared a GPU with another program",
    "suspended": "were suspended for a while",
    "clock": "ran while the machine's clock was changed",
    "mixed": "measured different versions, since the run was resumed with --anyway",
    BLIND: "were too short to show other load, and the machine was busy when the run began",
}
MOST_DISTURBED = 0.2  # share of a side's launches; so few do not move the median rank
_STOLEN_PERCENT = 2.0
_LEAST_SHARE = 0.03  # difference in CPU time between two sides that counts as a different load
_LEAST_CLOCK = 0.02


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of one launch. `disturbed`: kinds of DISTURBING with their figures; empty if it may decide."""

    disturbed: Mapping[str, str]
    recorded: bool = False  # whether other load is known; of several processes in under 0.1 s it is not
    cpu_share: float | None = None  # share of the CPU time it wanted that it got
    clocks: Mapping[str, float] = {}  # of each GPU, in MHz


def conditions_of(launch: Launch) -> Conditions:
    disturbed = {note.kind: note.evidence or "" for note in launch.notes if note.kind and note.kind in DISTURBING}
    if launch.facts.get("mixed_versions"):
        disturbed["mixed"] = ""
    stolen = _mean(launch, "cpu.steal")
    if stolen is not None and stolen >= _STOLEN_PERCENT:
        disturbed.setdefault("busy", f"the hypervisor took {stolen:.0f} % of the CPU time")
    return Conditions(
        disturbed=disturbed,
        recorded=any(m.metric in ("cpu.own_share", "cpu.others") for m in launch.measurements),
        cpu_share=_mean(launch, "cpu.own_share"),
        clocks={
            m.labels.get("device", ""): statistics.median(m.samples)
            for m in launch.measurements
            if m.metric == "gpu.clock" and m.samples
        },
    )


def disturbed_by(launch: Launch, notes: Sequence[Note]) -> frozenset[str]:
    """The kinds of DISTURBING that keep a launch from deciding. `notes`: of its run, as for `undecided`."""
    conditions = conditions_of(launch)
    blind = not conditions.recorded and any(note.kind == "busy" for note in notes)
    return frozenset(conditions.disturbed) or (frozenset((BLIND,)) if blind else frozenset())


def undecided(launches: Sequence[Launch], notes: Sequence[Note] = ()) -> Note | None:
    """Why these launches cannot decide a verdict; None if they can.

    `notes`: of their run; a machine that was busy when the run began counts against launches too short to show it.
    """
    conditions = [conditions_of(launch) for launch in launches]
    found = [c.disturbed for c in conditions]
    if sum(map(bool, found)) <= MOST_DISTURBED * len(launches):
        blind = sum(not c.recorded for c in conditions) > MOST_DISTURBED * len(launches)
        before = next((note.text for note in notes if note.kind == "busy"), None)
        if not blind or before is None:
            return None
        return Note(text=f"its launches are too short to show other load, and {before}", kind="busy")
    reasons = []
    for kind, text in DISTURBING.items():
        figures = [one[kind] for one in found if kind in one]
        if figures:
            worst = min(filter(None, figures), default=None)
            reasons.append(Note(text=f"{len(figures)} of {len(launches)} launches {text}", evidence=worst, kind=kind))
    if len(reasons) == 1:
        return reasons[0]
    return Note(text=", ".join(map(str, reasons)), kind=reasons[0].kind)


def unlike(ours: Sequence[Launch], theirs: Sequence[Launch]) -> Note | None:
    """How the conditions of two sets of launches differ; None if they were alike as far as is known."""
    sides = [[conditions_of(launch) for launch in side] for side in (ours, theirs)]
    disturbed = [undecided(side) for side in (ours, theirs)]
    shares = [_median([c.cpu_share for c in side if c.cpu_share is not None]) for side in sides]
    # Without other load, a low share only means that a program's own threads waited for each other.
    if any(disturbed) and shares[0] is not None and shares[1] is not None:
        if abs(shares[0] - shares[1]) > _LEAST_SHARE:
            got = f"got {_percent(shares[0])} and {_percent(shares[1])} of the CPU time they wanted"
            return Note(text=f"measured under different load: {got}", kind="busy")
    elif bool(disturbed[0]) != bool(disturbed[1]):
        return Note(text=f"measured under different conditions: {disturbed[0] or disturbed[1]}, on one side only")
    for device in sorted({device for side in sides for c in side for device in c.clocks}):
        clocks = [_median([c.clocks[device] for c in side if device in c.clocks]) for side in sides]
        if clocks[0] and clocks[1] and abs(clocks[0] / clocks[1] - 1) > _LEAST_CLOCK:
            at = f"{clocks[0]:,.0f} and {clocks[1]:,.0f} MHz"
            return Note(text=f"GPU {device} ran at different clocks: {at}", kind="throttled")
    return None


def _mean(launch: Launch, metric: str) -> float | None:
    found = [m for m in launch.measurements if m.metric == metric and m.samples]
    return statistics.fmean(found[0].samples) if found else None


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
