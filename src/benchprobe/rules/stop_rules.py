"""When a loop has been measured enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchprobe.rules.base import NS_PER_S, GivenSeconds, GivenSteps, LoopRule, kind_of_rule, number, whole
from benchprobe.rules.precision import MIN_EFFECTIVE, KeptSteps, MedianEstimate, estimate_median, spent_alpha


class NeverStop(LoopRule):
    """The loop runs to its natural end."""

    name = "none"

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        return None


class StopAfterObservations(LoopRule):
    """That many intervals; each ends at the first step end at which its steps took `interval_s` or more."""

    name = "observations"

    def __init__(self, observations: int, interval_s: float) -> None:
        super().__init__()
        self._wanted = observations
        self._interval_ns = round(interval_s * NS_PER_S)
        self._done: list[dict[str, int]] = []
        self._first = self._steps = self._ns = self._now_ns = 0

    def begin(self, now_ns: int) -> None:
        super().begin(now_ns)
        self._now_ns = now_ns

    def deadline_ns(self) -> int | None:
        # The earliest end of the last interval: step time never runs faster than the clock.
        return self._now_ns + (self._wanted - len(self._done)) * self._interval_ns - self._ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
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
        return "given" if len(self._done) == self._wanted else None

    def detail(self) -> dict[str, Any]:
        return {"interval_s": self._interval_ns / NS_PER_S, "observations": list(self._done)}


class StopWhenPrecise(LoopRule):
    """Once this process's median is known within ± `precision`; at least `min_steps`, at most the caps.

    Looks at `min_steps`, then after half as many steps again. Each look spends its own share of the 5 %, so the interval
    is valid at whichever look the loop ends.
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
        self._looks = self._looked_at = 0
        self._estimate: MedianEstimate | None = None
        self._reached = False

    def budget(self) -> int:
        left = self._next_look - self._steps.count
        if self._max_steps is not None:
            left = min(left, self._max_steps - self._steps.count)
        return max(0, left)

    def deadline_ns(self) -> int | None:
        return None if self._max_ns is None else self._begin_ns + self._max_ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        self._steps.extend(step_ns)
        count = self._steps.count
        too_many = self._max_steps is not None and count >= self._max_steps
        capped = too_many or (self._max_ns is not None and now_ns - self._begin_ns >= self._max_ns)
        if count >= self._next_look or (capped and count >= self._min_steps):
            found = self._look()
            precise = found.half_width is not None and found.half_width <= self._precision
            self._reached = precise and found.effective_samples >= MIN_EFFECTIVE
            self._next_look = math.ceil(count * self.LOOK_GROWTH)
        return "reached" if self._reached else "cap" if capped else None

    def detail(self) -> dict[str, Any]:
        """Up to the last step, so it also serves a loop that ended before the rule was satisfied."""
        if self._steps.count > self._looked_at:
            self._look()
        unknown = {"median_ns": None, "half_width": None, "effective_samples": 0.0}
        found = unknown if self._estimate is None else self._estimate._asdict()
        return {**found, "reached": self._reached, "looks": self._looks}

    def _look(self) -> MedianEstimate:
        self._estimate = estimate_median(self._steps, spent_alpha(self._looks))
        self._looks += 1
        self._looked_at = self._steps.count
        return self._estimate


_KNOWN = {
    "steps": ("steps",),
    "seconds": ("seconds",),
    "precision": ("precision", "min_steps", "max_steps", "max_seconds"),
    "observations": ("observations", "interval_s"),
    "": (),
}


def stop_rule(settings: Mapping[str, Any] | None) -> LoopRule:
    """The rule for `{"steps": N}`, `{"seconds": T}`, `{"precision": x, …}` or `{"observations": n, …}`; without
    settings one that never stops. ValueError if they make no sense."""
    kind, given = kind_of_rule(settings or {}, "stop", _KNOWN)
    if kind == "precision":
        return _precision_rule(given)
    if kind == "steps":
        return GivenSteps(whole(given, "steps", "stop"))
    if kind == "seconds":
        return GivenSeconds(number(given, "seconds", "stop"))
    if kind == "observations":
        bounds = {"interval_s": 1.0, **given}
        return StopAfterObservations(whole(bounds, "observations", "stop"), number(bounds, "interval_s", "stop"))
    return NeverStop()


def _precision_rule(given: Mapping[str, Any]) -> StopWhenPrecise:
    precision = number(given, "precision", "stop")
    if precision >= 1:
        raise ValueError(f"stop: precision is {precision:g}; give a fraction below 1, such as 0.01 for 1 %")
    min_steps = whole({"min_steps": 30, **given}, "min_steps", "stop")
    max_steps = whole(given, "max_steps", "stop") if "max_steps" in given else None
    if max_steps is not None and max_steps < min_steps:
        raise ValueError(f"stop: max_steps {max_steps} is below min_steps {min_steps}; raise one or lower the other")
    max_seconds = number(given, "max_seconds", "stop") if "max_seconds" in given else None
    return StopWhenPrecise(precision, min_steps, max_steps, max_seconds)
