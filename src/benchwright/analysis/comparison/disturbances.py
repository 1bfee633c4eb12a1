"""Pairs of launches that must not count: one of them waited for a core, throttled, was suspended, …

What waiting for a core did not change counts all the same, and the time of a launch is compared without the time it waited.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from benchwright.analysis.comparison.sides import Side, sides_of
from benchwright.analysis.comparison.verdicts import FEWEST_LAUNCHES
from benchwright.analysis.summary import launch_value
from benchwright.core.comparison import LEFT_OUT, Effect
from benchwright.core.conditions import AFFINITY, DISTURBING, SHARED_NODE, conditions_of
from benchwright.core.measurement import Measurement
from benchwright.core.metric import DURATION, OF_GPU, is_cpu_time, is_of_the_machine
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result

_OF_VERSIONS = frozenset(("mixed",))  # disturbs what other load does not affect, too
_OF_DEVICES = frozenset(("throttled", "shared", SHARED_NODE)) | _OF_VERSIONS  # disturbs GPU time
_WAITED = "busy"
_REASONS = DISTURBING | {AFFINITY: "could use different numbers of cores"}
_UNMOVED = 0.25  # of the spread that the waiting would cause: what varies less was hardly waited for
_WIDER = 1.1  # times as spread, from launch to launch: more than chance
_BASIS = "compared without the time the launches waited for a core"


class DisturbedPairs(NamedTuple):
    """By block the kinds of disturbance of its launches. `unmoved`: metrics that did not change with the waiting.
    `mended`: blocks whose durations are without it."""

    kinds: dict[int, frozenset[str]]
    unmoved: frozenset[str] = frozenset()
    mended: frozenset[int] = frozenset()

    def blocks(self, metric: str, unit: str | None) -> list[int]:
        """The blocks that do not count for a metric."""
        return [block for block in self.kinds if disturbs(self._kinds(block, metric), metric, unit)]

    def _kinds(self, block: int, metric: str) -> frozenset[str]:
        """Without a waiting that did the metric no harm."""
        harmless = metric in self.unmoved or (block in self.mended and metric == DURATION)
        return self.kinds[block] - {_WAITED} if harmless else self.kinds[block]

    def note(self, metric: str, unit: str | None, made: int) -> Note | None:
        """How many do not count, and why; None if all do. `made`: all pairs."""
        kinds = [self.kinds[block] for block in self.blocks(metric, unit)]
        if not kinds:
            return None
        why = next(text for kind, text in _REASONS.items() if any(kind in found for found in kinds))
        return Note(text=f"{len(kinds)} of {made} pairs do not count: their launches {why}", kind=LEFT_OUT)

    def judged(self, effect: Effect, made: int) -> tuple[Effect, Note | None]:
        """The effect with notes on its pairs, and on pairs that do not count."""
        if self.mended and effect.metric == DURATION:
            effect = replace(effect, basis=_BASIS)
        note = self.note(effect.metric, effect.unit, made)
        return (effect if note is None else replace(effect, doubts=(*effect.doubts, note))), note


def value_and_disturbance(launch: Launch, found: Measurement, workers: int | None) -> tuple[float, str | None]:
    """The value of a single launch, a duration without the wait for a core, and the disturbance; None: undisturbed.

    Of processes that took turns, one launch does not show that it had to wait for them: that takes several.
    """
    conditions, value = conditions_of(launch), launch_value(found, workers)
    kinds = frozenset(conditions.disturbed)
    if _WAITED in kinds and found.metric == DURATION and conditions.waited_s is not None and not conditions.took_turns:
        value, kinds = value - conditions.waited_s, kinds - {_WAITED}
    return value, "; ".join(sorted(kinds)) if disturbs(kinds, found.metric, found.unit) else None


def disturbed_pairs(both: tuple[Result, Result], workers: int | None) -> tuple[DisturbedPairs, tuple[Result, Result]]:
    """Disturbed pairs of alternating launches, and the results to compare: if launches waited for a core, the durations
    of pairs of which it is known for how long are without that time."""
    found: dict[int, frozenset[str]] = {}
    allowed: dict[int, str] = {}
    for result in both:
        for launch in result.counted:
            conditions = conditions_of(launch)
            kinds = frozenset(conditions.disturbed)
            if launch.block is not None and allowed.setdefault(launch.block, conditions.allowed) != conditions.allowed:
                kinds |= {AFFINITY}
            if launch.block is not None and kinds:
                found[launch.block] = found.get(launch.block, frozenset()) | kinds
    if not any(_WAITED in kinds for kinds in found.values()):
        return DisturbedPairs(found), both
    unmoved = frozenset.intersection(*(_unmoved(result, workers) for result in both))
    waited = [{x.block: conditions_of(x).waited_s for x in result.counted if x.block is not None} for result in both]
    mended = frozenset(b for b, s in waited[0].items() if s is not None and waited[1].get(b) is not None)
    sides = _without_waiting(both[0], waited[0], mended), _without_waiting(both[1], waited[1], mended)
    if not all(_waited_for(before, after, mended) for before, after in zip(both, sides, strict=True)):
        return DisturbedPairs(found, unmoved), both
    return DisturbedPairs(found, unmoved, mended), sides


def _waited_for(before: Result, after: Result, mended: frozenset[int]) -> bool:
    """Whether launches had to wait for the processes that waited for a core: then their times vary less without that waiting.
    Of what works in the background they vary more. What the first thread waits for, the launch always does."""
    if not any(conditions_of(launch).took_turns for launch in before.counted):
        return True
    return _spread(_durations(after, mended)) <= _WIDER * _spread(_durations(before, mended))


def _durations(result: Result, blocks: frozenset[int]) -> list[float]:
    launches = (x for x in result.counted if x.block in blocks)
    return [m.samples[0] for x in launches for m in x.measurements if m.metric == DURATION and m.samples]


def _without_waiting(result: Result, waited: dict[int, float | None], mended: frozenset[int]) -> Result:
    return replace(
        result,
        launches=tuple(
            _sooner(x, waited.get(x.block) or 0.0) if x.block is not None and x.block in mended else x
            for x in result.launches
        ),
    )


def _sooner(launch: Launch, waited_s: float) -> Launch:
    return replace(
        launch,
        measurements=tuple(
            replace(m, samples=tuple(value - waited_s for value in m.samples)) if m.metric == DURATION else m
            for m in launch.measurements
        ),
    )


def _unmoved(result: Result, workers: int | None) -> frozenset[str]:
    """Metrics that varied much less from launch to launch than the waiting, which varied too, would have made them vary."""
    shares = {x.block: conditions_of(x).waited_share for x in result.counted if x.block is not None}
    sides: dict[str, list[bool]] = {}
    for (metric, _, _), side in sides_of(result, workers, paired=True).items():
        sides.setdefault(metric, []).append(_is_unmoved(side, shares))
    return frozenset(metric for metric, found in sides.items() if all(found))


def _is_unmoved(side: Side, shares: dict[int, float | None]) -> bool:
    waited = [shares.get(block) for block in side.launches]
    values = [launch_value(m, side.workers) for m in side.launches.values()]
    if len(values) < FEWEST_LAUNCHES or not all(math.isfinite(value) and value > 0 for value in values):
        return False
    known = [share for share in waited if share is not None and share < 1]
    if len(known) < len(values):
        return False
    would = _spread([-math.log1p(-share) for share in known])
    return _spread([math.log(value) for value in values]) <= _UNMOVED * would


def _spread(values: Sequence[float]) -> float:
    """The median distance from the median; 0 if there are none."""
    if not values:
        return 0.0
    middle = statistics.median(values)
    return statistics.median(abs(value - middle) for value in values)


def disturbs(kinds: frozenset[str], metric: str, unit: str | None) -> bool:
    """Whether kinds of disturbance matter to a metric. Waiting for a core costs no CPU or GPU time, and neither sizes nor what a model learns depend on other load."""
    if metric in OF_GPU:
        return bool(kinds & _OF_DEVICES)
    of_machine = is_of_the_machine(metric, unit)
    if of_machine and SHARED_NODE in kinds:  # caches and memory are shared, too
        return True
    return bool(kinds if of_machine and not is_cpu_time(metric, unit) else kinds & _OF_VERSIONS)
