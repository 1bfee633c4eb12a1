"""When a loop is warm. How a rule is used: see `benchprobe.rules.stop_rules`.

Pure: the times are passed in. Why these rules and how they fare: docs/architecture/stopping.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from benchprobe.rules.rule_settings import number, only_set, refuse_others, whole
from benchprobe.rules.steadiness import StepCells, is_steady

NS_PER_S = 1_000_000_000
# Where a rule counts no steps, the loop still hands them over now and then.
OPEN_BUDGET = 1 << 16
DEFAULT_MAX_SECONDS = 60.0
DEFAULT_MIN_SECONDS = 0.5


class WarmupRule(ABC):
    """Says at which step the measurement begins: always the one after the decision, never an earlier one."""

    def __init__(self) -> None:
        self._begin_ns = 0

    def begin(self, now_ns: int) -> None:
        """Called once, before the first step."""
        self._begin_ns = now_ns

    def expect(self, total: int | None) -> None:  # noqa: B027 most rules do not care
        """The loop will have so many steps; None: nobody knows."""

    @abstractmethod
    def budget(self) -> int:
        """How many steps may run before `add` must be called."""

    def deadline_ns(self) -> int | None:
        """When `add` should be called even if the budget is not used up; None: no limit."""
        return None

    @abstractmethod
    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        """None: still warming up. Else why it is over: `given`, `detected`, or `cap` (it never settled)."""


class GivenWarmupSteps(WarmupRule):
    """Exactly so many steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def budget(self) -> int:
        return self._left

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        self._left = max(0, self._left - len(step_ns))
        return None if self._left else "given"


class GivenWarmupSeconds(WarmupRule):
    """Until the first step end at or after that time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._duration_ns = round(seconds * NS_PER_S)

    def budget(self) -> int:
        return OPEN_BUDGET if self._duration_ns else 0

    def deadline_ns(self) -> int | None:
        return self._begin_ns + self._duration_ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        return "given" if now_ns - self._begin_ns >= self._duration_ns else None


class DetectedWarmup(WarmupRule):
    """Until the recent steps show no trend at two looks in a row, or the cap.

    Looks come at 8, 10, 13, 17… steps (each a quarter later). A look counts once the recent half of the steps is long
    enough to judge by: half of `min_seconds` on 16 steps or more; a slow loop may be judged from 8 steps on.
    A loop of known length is cut in half, unless that half is shorter than half of `min_seconds`.
    """

    FIRST_LOOK = 8
    LOOK_GROWTH = 1.25
    LOOKS_IN_A_ROW = 2
    ENOUGH_STEPS = 16
    # So many times `min_seconds` in the recent half make 8 steps enough.
    SLOW_LOOP = 5

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

    def deadline_ns(self) -> int | None:
        return self._begin_ns + (self._min_ns // 2 if self._past_half else self._max_ns)

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        self._steps.extend(step_ns)
        if self._steps.count >= self._next_look:
            self._look()
            self._next_look = math.ceil(self._steps.count * self.LOOK_GROWTH)
        if self._steady_looks >= self.LOOKS_IN_A_ROW:
            return "detected"
        too_many = self._max_steps is not None and self._steps.count >= self._max_steps
        too_long = now_ns - self._begin_ns >= (self._min_ns // 2 if self._past_half else self._max_ns)
        return "cap" if too_many or too_long else None

    @property
    def _past_half(self) -> bool:
        return self._half is not None and self._steps.count >= self._half

    def _look(self) -> None:
        recent = self._steps.recent()
        enough_ns = self._min_ns / 2 if self._steps.count >= self.ENOUGH_STEPS else self._min_ns * self.SLOW_LOOP
        # By the recent steps, not since the beginning: a minute of compiling says nothing about the steps after it.
        if sum(recent) < enough_ns:
            return
        self._steady_looks = self._steady_looks + 1 if is_steady(recent, self._steps.count) else 0


def warmup_rule(settings: Mapping[str, Any]) -> WarmupRule:
    """`{"steps": N}` or `{"seconds": T}`: given. Else detected, with `max_seconds` (60) and, if wished, `min_seconds`
    (0.5: what a loop of quick steps is watched for) and `max_steps` as bounds. ValueError if they make no sense."""
    given = only_set(settings, "warm-up")
    if "steps" in given and "seconds" in given:
        raise ValueError("warm-up: both steps and seconds are given; give one")
    if "steps" in given:
        refuse_others(given, "warm-up", ("steps", "max_seconds"))
        return GivenWarmupSteps(whole(given, "steps", "warm-up", at_least=0))
    if "seconds" in given:
        refuse_others(given, "warm-up", ("seconds", "max_seconds"))
        return GivenWarmupSeconds(number(given, "seconds", "warm-up", zero=True))
    refuse_others(given, "warm-up", ("max_seconds", "min_seconds", "max_steps"))
    bounds = {"max_seconds": DEFAULT_MAX_SECONDS, "min_seconds": DEFAULT_MIN_SECONDS, **given}
    return DetectedWarmup(
        max_seconds=number(bounds, "max_seconds", "warm-up"),
        min_seconds=number(bounds, "min_seconds", "warm-up", zero=True),
        max_steps=whole(bounds, "max_steps", "warm-up") if "max_steps" in bounds else None,
    )
