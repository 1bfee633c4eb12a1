"""The conditions launches ran under, as far as recorded, and whether their results may decide a verdict.

Comparisons of separate runs, `vs eager` and reports all ask here, so that they agree on which launches were disturbed.
What was not recorded is None or absent, and counts neither for nor against a launch. A busy machine disturbs nothing by
itself: what does is that a launch itself had to wait for a core (run-queue delay, steal, the limit of a control group).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from benchwright.core.metric import CPU_TIME
from benchwright.core.note import Note
from benchwright.core.run import Launch

SHARED_NODE = "shared_node"
AFFINITY = "affinity"  # disturbs nothing by itself: only launches that could use other numbers of cores do not compare
# Kinds of Note that make a launch's time say as much about the machine as about the program.
DISTURBING = {
    "busy": "ran while the machine was busy",
    "throttled": "ran on a throttled GPU",
    "shared": "shared a GPU with another program",
    SHARED_NODE: "ran on a node that the scheduler also gave to others",
    "suspended": "were suspended for a while",
    "clock": "ran while the machine's clock was changed",
    "mixed": "measured different versions, since the run was resumed with --anyway",
    "client": "had a client that could not keep up",
    "cores": "had client and server on the same cores",
    "failures": "had requests that failed",
}
MOST_DISTURBED = 0.2  # share of a side's launches; so few do not move the median rank
_STOLEN_PERCENT = 2.0
_MUCH_STOLEN_PERCENT = 5.0  # what is left of a time without its waiting says as much about the hypervisor
_LEAST_SHARE = 0.03  # difference in CPU time between two sides that counts as a different load
_LEAST_CLOCK = 0.02
_MAIN_SHARE = 0.9  # of a launch's CPU time: so much must be the first thread's for its waiting to be the launch's
_SEEN_SHARE = 0.8  # the same for all that were seen; the waiting of short-lived ones that were not stays in its time
_FITS = 1.02  # times its duration: clocks differ a little
_MOST_TOGETHER = 0.1  # of the looks: several threads that are ready more often may wait at the same time
OTHERS_PERCENT = 5.0  # of all cores: less use by others is ignored; ticks of 10 ms are coarse
_FULL_PERCENT = 3.0  # less than this idle: no core was free
# Metrics whose mean over a launch decides whether it was disturbed.
GPU_CLOCK = "gpu.clock"
JUDGED_BY = frozenset({"cpu.steal", "cpu.own_share", "cpu.others", "cpu.idle", CPU_TIME})


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions of one launch. `disturbed`: kinds of DISTURBING with their figures; empty if it may decide."""

    disturbed: Mapping[str, str]
    recorded: bool = False  # whether its waiting is known; of several processes in under 0.1 s it is not
    crowded: bool = False  # others used all cores, whether or not it had to wait for one
    cpu_share: float | None = None  # share of the CPU time it wanted that it got
    waited_s: float | None = None  # for a core; None: not known, or not of the launch as a whole
    took_turns: bool = False  # several threads or processes waited, one after the other
    waited_share: float | None = None  # of its time, as far as is known
    clocks: Mapping[str, float] = {}  # of each GPU, in MHz
    allowed: str = ""  # how many of the node's cores it could use, if not all


class Scheduled(NamedTuple):
    """How long a launch ran and waited for a core. `took_turns`: not by its first thread, which did not do the work."""

    ran_s: float
    waited_s: float
    took_turns: bool = False

    def fits(self, duration_s: float | None) -> bool:
        """Whether there was time for it. Now and then the kernel takes a sleep for waiting, or two waited at the same time."""
        return duration_s is None or self.ran_s + self.waited_s <= _FITS * duration_s


def scheduled(usage: Mapping[str, Any], cpu_s: float | None) -> Scheduled | None:
    """Of the launch as a whole, where that is known: its first thread did nearly all the work, or one thread or process after the
    other, hardly ever several at a time, did.

    `usage`: what the kernel counted of it, as in the `end` event.
    """
    cpu_s = cpu_s or 0.0
    if (ran_s := usage.get("main_ran_s") or 0.0) and ran_s >= _MAIN_SHARE * cpu_s:
        return Scheduled(ran_s, float(usage.get("main_waited_s") or 0.0))
    ran_s = usage.get("seen_ran_s") or 0.0
    if ran_s and ran_s >= _SEEN_SHARE * cpu_s and usage.get("seen_together", 1.0) <= _MOST_TOGETHER:
        return Scheduled(ran_s, float(usage.get("seen_waited_s") or 0.0), took_turns=True)
    return None


def waiting_share(own_share: float, cores: float) -> float:
    """The share of its time that a program waited for a core. `own_share`: of the CPU time it wanted, what it got; `cores`: how
    many it used. One that sleeps hardly waits; of one with many threads each waits as long."""
    return (1 - own_share) * min(1.0, cores / own_share) if own_share > 0 else 1.0


def conditions_of(launch: Launch) -> Conditions:
    disturbed = {note.kind: note.evidence or "" for note in launch.notes if note.kind and note.kind in DISTURBING}
    if launch.facts.get("mixed_versions"):
        disturbed["mixed"] = ""
    means = _means(launch)
    stolen = means.get("cpu.steal") or 0.0
    if stolen >= _STOLEN_PERCENT:
        disturbed.setdefault("busy", f"the hypervisor took {stolen:.0f} % of the CPU time")
    share, others, idle = map(means.get, ("cpu.own_share", "cpu.others", "cpu.idle"))
    crowded = others is not None and others >= OTHERS_PERCENT and idle is not None and idle < _FULL_PERCENT
    cpu_s, usage = means.get(CPU_TIME), launch.facts.get("usage") or {}
    whole = scheduled(usage, cpu_s)
    return Conditions(
        disturbed=disturbed,
        recorded=share is not None or (others is not None and not crowded),
        crowded=crowded,
        cpu_share=share,
        waited_s=None
        if whole is None or stolen >= _MUCH_STOLEN_PERCENT or not whole.fits(launch.duration_s)
        else whole.waited_s,
        took_turns=whole is not None and whole.took_turns,
        waited_share=_waited_share(launch.duration_s, cpu_s, share, usage),
        clocks={
            m.labels.get("device", ""): statistics.median(m.samples)
            for m in launch.measurements
            if m.metric == GPU_CLOCK and m.samples
        },
        allowed=next((note.evidence or "" for note in launch.notes if note.kind == AFFINITY), ""),
    )


def _waited_share(
    duration_s: float | None, cpu_s: float | None, share: float | None, usage: Mapping[str, Any]
) -> float | None:
    """As long as its first thread waited, or as all of them did on average or one after the other, whichever is longest."""
    if not duration_s:
        return None
    whole = scheduled(usage, cpu_s)
    waited = (usage.get("main_waited_s"), None if whole is None else whole.waited_s)
    found = [min(1.0, seconds / duration_s) for seconds in waited if seconds is not None]
    found += [] if share is None or cpu_s is None else [waiting_share(share, cpu_s / duration_s)]
    return max(found, default=None)


def undecided(launches: Sequence[Launch], notes: Sequence[Note] = ()) -> Note | None:
    """Why these launches cannot decide a verdict; None if they can.

    `notes`: of their run; a machine that was busy counts against launches too short to show whether they had to wait.
    """
    return undecided_by([conditions_of(launch) for launch in launches], notes)


def undecided_by(conditions: Sequence[Conditions], notes: Sequence[Note] = ()) -> Note | None:
    found = [c.disturbed for c in conditions]
    if sum(map(bool, found)) <= MOST_DISTURBED * len(conditions):
        blind = sum(not c.recorded for c in conditions) > MOST_DISTURBED * len(conditions)
        crowded = "others used all cores" if any(c.crowded and not c.recorded for c in conditions) else None
        before = next((note.text for note in notes if note.kind == "busy"), crowded)
        if not blind or before is None:
            return None
        return Note(text=f"its launches are too short to show other load, and {before}", kind="busy")
    reasons = []
    for kind, text in DISTURBING.items():
        figures = [one[kind] for one in found if kind in one]
        if figures:
            worst = min(filter(None, figures), default=None)
            reasons.append(Note(text=f"{len(figures)} of {len(conditions)} launches {text}", evidence=worst, kind=kind))
    if len(reasons) == 1:
        return reasons[0]
    return Note(text=", ".join(map(str, reasons)), kind=reasons[0].kind)


class SideConditions(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The conditions of several launches together. `disturbed`: why they decide nothing by themselves."""

    disturbed: Note | None = None
    cpu_share: float | None = None
    clocks: dict[str, float] = {}  # of each GPU
    allowed: str = ""  # how many cores they could use; empty without launches


def side_conditions(conditions: Sequence[Conditions]) -> SideConditions:
    clocks: dict[str, list[float]] = {}
    for each in conditions:
        for device, clock in each.clocks.items():
            clocks.setdefault(device, []).append(clock)
    return SideConditions(
        undecided_by(conditions),
        _median([c.cpu_share for c in conditions if c.cpu_share is not None]),
        {device: statistics.median(found) for device, found in clocks.items()},
        ", ".join(sorted({each.allowed or "all" for each in conditions})),
    )


def unlike(ours: Sequence[Launch], theirs: Sequence[Launch]) -> Note | None:
    """How the conditions of two sets of launches differ; None if they were alike as far as is known."""
    sides = (side_conditions([conditions_of(launch) for launch in side]) for side in (ours, theirs))
    return unlike_conditions(*sides)


def unlike_conditions(ours: SideConditions, theirs: SideConditions) -> Note | None:
    if ours.allowed and theirs.allowed and ours.allowed != theirs.allowed:
        return Note(text=f"could use different numbers of cores: {ours.allowed} and {theirs.allowed}", kind=AFFINITY)
    if not (ours.disturbed or theirs.disturbed or (ours.clocks and theirs.clocks)):
        return None
    sides = (ours, theirs)
    disturbed = [side.disturbed for side in sides]
    shares = [side.cpu_share for side in sides]
    # Without other load, a low share only means that a program's own threads waited for each other.
    if any(disturbed) and shares[0] is not None and shares[1] is not None:
        if abs(shares[0] - shares[1]) > _LEAST_SHARE:
            got = f"got {_percent(shares[0])} and {_percent(shares[1])} of the CPU time they wanted"
            return Note(text=f"measured under different load: {got}", kind="busy")
    elif bool(disturbed[0]) != bool(disturbed[1]):
        return Note(text=f"measured under different conditions: {disturbed[0] or disturbed[1]}, on one side only")
    for device in sorted({*ours.clocks, *theirs.clocks}):
        clocks = [side.clocks.get(device) for side in sides]
        if clocks[0] and clocks[1] and abs(clocks[0] / clocks[1] - 1) > _LEAST_CLOCK:
            at = f"{clocks[0]:,.0f} and {clocks[1]:,.0f} MHz"
            return Note(text=f"GPU {device} ran at different clocks: {at}", kind="throttled")
    return None


def _means(launch: Launch) -> dict[str, float]:
    """Of the samples of each metric that conditions are read from; of several measurements the first."""
    found = {m.metric: m.samples for m in reversed(launch.measurements) if m.metric in JUDGED_BY and m.samples}
    return {metric: statistics.fmean(samples) for metric, samples in found.items()}


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
