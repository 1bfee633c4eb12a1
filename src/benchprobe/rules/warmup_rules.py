"""When a loop is warm: the measurement begins with the step after the decision, never with an earlier one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchprobe.rules.base import NS_PER_S, GivenSeconds, GivenSteps, LoopRule, kind_of_rule, number, whole
from benchprobe.rules.steadiness import StepCells, is_steady

DEFAULT_MAX_SECONDS = 60.0
DEFAULT_MIN_SECONDS = 0.5
_KNOWN = {
    "steps": ("steps", "max_seconds"),
    "seconds": ("seconds", "max_seconds"),
    "": ("max_seconds", "min_seconds", "max_steps"),
}


class DetectedWarmup(LoopRule):
    """Until the recent steps show no trend at two looks in a row, or the cap.

    Looks come at 8, 10, 13, 17… steps (each a quarter later). A look counts once the recent half of the steps is long
    enough to judge: half of `min_seconds` and 16 steps; a slow loop may be judged from 8 steps on. In a loop of known length
    warm-up takes at most half of it, unless that half is shorter than half of `min_seconds`.
    """

    FIRST_LOOK = 8
    LOOK_GROWTH = 1.25
    LOOKS_IN_A_ROW = 2
    ENOUGH_STEPS = 16
    SLOW_LOOP = 5  # with this many times `min_seconds` in the recent half, 8 steps are enough

    def __init__(self, max_seconds: float, min_seconds: float, max_steps: int | None) -> None:
        super().__init__()
        self._max_ns = round(max_seconds * NS_PER_S)
        self._min_ns = round(min_seconds * NS_PER_S)
        self._max_steps = max_steps
        self._half: int | None = None
        self._steps = StepCells()
        self._next_look = self.FIRST_LOOK
        self._steady_looks = 0

    def budget(self) -> int:
        left = self._next_look - self._steps.count
        if self._max_steps is not None:
            left = min(left, self._max_steps - self._steps.count)
        if self._half is not None and self._steps.count < self._half:
            left = min(left, self._half - self._steps.count)
        return max(0, left)

    def expect(self, total: int | None) -> None:
        self._half = None if total is None or total < 2 else total // 2

    def deadline_ns(self) -> int:
        past_half = self._half is not None and self._steps.count >= self._half
        return self._begin_ns + (self._min_ns // 2 if past_half else self._max_ns)

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        self._steps.extend(step_ns)
        if self._steps.count >= self._next_look:
            self._look()
            self._next_look = math.ceil(self._steps.count * self.LOOK_GROWTH)
        if self._steady_looks >= self.LOOKS_IN_A_ROW:
            return "detected"
        too_many = self._max_steps is not None and self._steps.count >= self._max_steps
        return "cap" if too_many or now_ns >= self.deadline_ns() else None

    def _look(self) -> None:
        recent = self._steps.recent()
        enough_ns = self._min_ns / 2 if self._steps.count >= self.ENOUGH_STEPS else self._min_ns * self.SLOW_LOOP
        # Only recent steps: a minute of compiling says nothing about the steps after it.
        if sum(recent) >= enough_ns:
            self._steady_looks = self._steady_looks + 1 if is_steady(recent, self._steps.count) else 0


def warmup_rule(settings: Mapping[str, Any]) -> LoopRule:
    """`{"steps": N}` or `{"seconds": T}`: given. Else detected, with `max_seconds` (60) and, optionally, `min_seconds`
    (0.5: how long a loop of quick steps is watched) and `max_steps` as bounds. ValueError if they make no sense."""
    kind, given = kind_of_rule(settings, "warm-up", _KNOWN)
    if kind == "steps":
        return GivenSteps(whole(given, "steps", "warm-up", at_least=0))
    if kind == "seconds":
        return GivenSeconds(number(given, "seconds", "warm-up", zero=True))
    bounds = {"max_seconds": DEFAULT_MAX_SECONDS, "min_seconds": DEFAULT_MIN_SECONDS, **given}
    return DetectedWarmup(
        max_seconds=number(bounds, "max_seconds", "warm-up"),
        min_seconds=number(bounds, "min_seconds", "warm-up", zero=True),
        max_steps=whole(bounds, "max_steps", "warm-up") if "max_steps" in bounds else None,
    )
