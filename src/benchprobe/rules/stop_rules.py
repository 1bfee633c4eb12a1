"""When a loop has been measured enough, and (from `warmup_rules`) when it is warm.

A rule is told when it begins, then handed the steps as they were timed. Between two calls of `add` the loop may run
`budget()` steps, and should call again at the first step end at or after `deadline_ns()`; a loop that keeps to
both gets exactly the steps that the rule asks for. A budget of 0 means: call `add` with no steps before the next one.

Pure: the times are passed in. Why these rules and how they fare: docs/architecture/stopping.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from benchprobe.rules.precision import MIN_EFFECTIVE, KeptSteps, MedianEstimate, estimate_median, spent_alpha
from benchprobe.rules.rule_settings import number, only_set, refuse_others, whole
from benchprobe.rules.warmup_rules import NS_PER_S, OPEN_BUDGET, WarmupRule, warmup_rule

__all__ = ["StopRule", "WarmupRule", "stop_rule", "warmup_rule"]


class StopRule(ABC):
    """Says after which step the loop has been measured enough."""

    name: str

    def __init__(self) -> None:
        self._begin_ns = 0

    def begin(self, now_ns: int) -> None:
        """Called once, when the first measured step begins."""
        self._begin_ns = now_ns

    @abstractmethod
    def budget(self) -> int:
        """How many steps may run before `add` must be called."""

    def deadline_ns(self) -> int | None:
        """When `add` should be called even if the budget is not used up; None: no limit."""
        return None

    @abstractmethod
    def add(self, step_ns: Sequence[int], now_ns: int) -> bool:
        """True: measured enough."""

    def detail(self) -> dict[str, Any]:
        """What the rule found, for the `stop` event."""
        return {}


class NeverStop(StopRule):
    """The loop runs to its natural end."""

    name = "none"

    def budget(self) -> int:
        return OPEN_BUDGET

    def add(self, step_ns: Sequence[int], now_ns: int) -> bool:
        return False


class StopAfterSteps(StopRule):
    """Exactly so many steps."""

    name = "steps"

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def budget(self) -> int:
        return self._left

    def add(self, step_ns: Sequence[int], now_ns: int) -> bool:
        self._left = max(0, self._left - len(step_ns))
        return self._left == 0


class StopAfterSeconds(StopRule):
    """At the first step end at or after that time."""

    name = "seconds"

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._duration_ns = round(seconds * NS_PER_S)

    def budget(self) -> int:
        return OPEN_BUDGET

    def deadline_ns(self) -> int | None:
        return self._begin_ns + self._duration_ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> bool:
        return now_ns - self._begin_ns >= self._duration_ns


class StopAfterObservations(StopRule):
    """So many intervals; each ends at the first step end at which its steps took `interval_s` or more."""

    name = "observations"

    def __init__(self, observations: int, interval_s: float) -> None:
        super().__init__()
        self._wanted = observations
        self._interval_ns = round(interval_s * NS_PER_S)
        self._done: list[dict[str, int]] = []
        self._first = 0
        self._steps = 0
        self._ns = 0
        self._now_ns = 0

    def begin(self, now_ns: int) -> None:
        super().begin(now_ns)
        self._now_ns = now_ns

    def budget(self) -> int:
        return OPEN_BUDGET

    def deadline_ns(self) -> int | None:
        # The soonest that the last interval can end: step time never runs faster than the clock.
        return self._now_ns + (self._wanted - len(self._done)) * self._interval_ns - self._ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> bool:
        self._now_ns = now_ns
        for one_ns in step_ns:
            if len(self._done) == self._wanted:
                break
            self._steps += 1
            self._ns += one_ns
            if self._ns >= self._interval_ns:
                self._done.append({"first": self._first, "steps": self._steps, "ns": self._ns})
                self._first += self._steps
                self._steps = self._ns = 0
        return len(self._done) == self._wanted

    def detail(self) -> dict[str, Any]:
        return {"interval_s": self._interval_ns / NS_PER_S, "observations": list(self._done)}


class StopWhenPrecise(StopRule):
    """When this process's own median is known within ± `precision`, at least `min_steps`, at most the caps.

    Looks come at `min_steps` and each half as many steps later. Each spends its own share of the 5 %, so the interval
    holds at whichever look the loop ends.
    """

    name = "precision"
    LOOK_GROWTH = 1.5

    def __init__(
        self, precision: float, min_steps: int, max_steps: int | None = None, max_seconds: float | None = None
    ) -> None:
        super().__init__()
        self._precision = precision
        self._max_steps = max_steps
        self._max_ns = None if max_seconds is None else round(max_seconds * NS_PER_S)
        self._steps = KeptSteps()
        self._min_steps = self._next_look = min_steps
        self._looks = 0
        self._looked_at = 0
        self._estimate: MedianEstimate | None = None
        self._reached = False

    def budget(self) -> int:
        left = self._next_look - self._steps.count
        if self._max_steps is not None:
            left = min(left, self._max_steps - self._steps.count)
        return max(0, left)

    def deadline_ns(self) -> int | None:
        return None if self._max_ns is None else self._begin_ns + self._max_ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> bool:
        self._steps.extend(step_ns)
        count = self._steps.count
        capped = (self._max_steps is not None and count >= self._max_steps) or (
            self._max_ns is not None and now_ns - self._begin_ns >= self._max_ns
        )
        if count >= self._next_look or (capped and count >= self._min_steps):
            found = self._look()
            self._reached = (
                found.half_width is not None
                and found.half_width <= self._precision
                and found.effective_samples >= MIN_EFFECTIVE
            )
            self._next_look = math.ceil(count * self.LOOK_GROWTH)
        return self._reached or capped

    def detail(self) -> dict[str, Any]:
        """As of the last step handed in, so it also serves a loop that ended before the rule was satisfied."""
        if self._steps.count > self._looked_at:
            self._look()
        found = self._estimate
        return {
            "median_ns": None if found is None else found.median_ns,
            "half_width": None if found is None else found.half_width,
            "effective_samples": 0.0 if found is None else found.effective_samples,
            "reached": self._reached,
            "looks": self._looks,
        }

    def _look(self) -> MedianEstimate:
        self._estimate = estimate_median(self._steps, spent_alpha(self._looks))
        self._looks += 1
        self._looked_at = self._steps.count
        return self._estimate


def stop_rule(settings: Mapping[str, Any] | None) -> StopRule:
    """The rule for `{"steps": N}`, `{"seconds": T}`, `{"precision": x, …}` or `{"observations": n, …}`; nothing:
    never stops. ValueError if the settings make no sense."""
    given = only_set(settings or {}, "stop")
    kinds = [kind for kind in ("steps", "seconds", "precision", "observations") if kind in given]
    if len(kinds) > 1:
        raise ValueError(f"stop: {' and '.join(kinds)} are given; give one")
    kind = kinds[0] if kinds else None
    if kind == "steps":
        refuse_others(given, "stop", ("steps",))
        return StopAfterSteps(whole(given, "steps", "stop"))
    if kind == "seconds":
        refuse_others(given, "stop", ("seconds",))
        return StopAfterSeconds(number(given, "seconds", "stop"))
    if kind == "observations":
        refuse_others(given, "stop", ("observations", "interval_s"))
        bounds = {"interval_s": 1.0, **given}
        return StopAfterObservations(whole(bounds, "observations", "stop"), number(bounds, "interval_s", "stop"))
    if kind == "precision":
        return _precision_rule(given)
    refuse_others(given, "stop", ())
    return NeverStop()


def _precision_rule(given: Mapping[str, Any]) -> StopWhenPrecise:
    refuse_others(given, "stop", ("precision", "min_steps", "max_steps", "max_seconds"))
    precision = number(given, "precision", "stop")
    if precision >= 1:
        raise ValueError(f"stop: precision is {precision:g}; give a fraction below 1, such as 0.01 for 1 %")
    min_steps = whole({"min_steps": 30, **given}, "min_steps", "stop")
    max_steps = whole(given, "max_steps", "stop") if "max_steps" in given else None
    if max_steps is not None and max_steps < min_steps:
        raise ValueError(
            f"stop: max_steps {max_steps} is below min_steps {min_steps}; raise the one or lower the other"
        )
    max_seconds = number(given, "max_seconds", "stop") if "max_seconds" in given else None
    return StopWhenPrecise(precision, min_steps, max_steps, max_seconds)
