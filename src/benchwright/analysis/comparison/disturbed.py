"""Pairs of launches that must not count: one of them shared its cores, throttled, was suspended, …"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from benchwright.core.metric import OF_GPU, is_cpu_time, is_of_the_machine
from benchwright.core.note import Note
from benchwright.core.results.comparison import LEFT_OUT
from benchwright.core.results.conditions import DISTURBING, disturbed_by
from benchwright.core.run import Result

_OF_VERSIONS = frozenset(("mixed",))  # disturbs what other load does not affect, too
_OF_DEVICES = frozenset(("throttled", "shared")) | _OF_VERSIONS  # disturbs GPU time


class DisturbedPairs(NamedTuple):
    """By block the kinds of disturbance of its launches."""

    kinds: dict[int, frozenset[str]]

    def blocks(self, metric: str, unit: str | None) -> list[int]:
        """Those that do not count for a metric."""
        return [block for block, kinds in self.kinds.items() if _disturbs(kinds, metric, unit)]

    def note(self, metric: str, unit: str | None, made: int) -> Note | None:
        """How many do not count, and why; None if all do. `made`: all pairs."""
        kinds = [self.kinds[block] for block in self.blocks(metric, unit)]
        if not kinds:
            return None
        why = next(text for kind, text in DISTURBING.items() if any(kind in found for found in kinds))
        return Note(text=f"{len(kinds)} of {made} pairs do not count: their launches {why}", kind=LEFT_OUT)


def disturbed_pairs(both: Sequence[Result], notes: Sequence[Note]) -> DisturbedPairs:
    """Those of two results whose launches alternated. `notes`: of the run."""
    found: dict[int, frozenset[str]] = {}
    for result in both:
        for launch in result.counted:
            kinds = disturbed_by(launch, notes)
            if launch.block is not None and kinds:
                found[launch.block] = found.get(launch.block, frozenset()) | kinds
    return DisturbedPairs(found)


def _disturbs(kinds: frozenset[str], metric: str, unit: str | None) -> bool:
    """Waiting for a core costs no CPU or GPU time, and neither sizes nor what a model learns depend on other load."""
    if metric in OF_GPU:
        return bool(kinds & _OF_DEVICES)
    by_load = is_of_the_machine(metric, unit) and not is_cpu_time(metric, unit)
    return bool(kinds if by_load else kinds & _OF_VERSIONS)
