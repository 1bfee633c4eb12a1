"""The base of all rules, the two used for both warm-up and stop, and how settings are read.

Why these rules, and how well they do: docs/architecture/stopping.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

NS_PER_S = 1_000_000_000
OPEN_BUDGET = 1 << 16  # steps between two calls of a rule that does not count them


class LoopRule(ABC):
    """Decides after which step warm-up, or the measurement, is over. Pure: times are passed in.

    Between two calls of `add` the loop may run `budget()` steps (0: call `add` with no steps first), and should call again
    at the first step end at or after `deadline_ns()`; a loop that respects both gets exactly the steps the rule wants.
    """

    name = "given"

    def __init__(self) -> None:
        self._begin_ns = 0

    def begin(self, now_ns: int) -> None:
        """Called once, before the first step it sees."""
        self._begin_ns = now_ns

    def expect(self, total: int | None) -> None:  # noqa: B027 most rules do not care
        """The length of the loop; None: unknown."""

    def budget(self) -> int:
        """How many steps may run before `add` must be called."""
        return OPEN_BUDGET

    def deadline_ns(self) -> int | None:
        """When to call `add` even if the budget is not used up; None: no limit."""
        return None

    @abstractmethod
    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        """None: go on. Else why it is over: `given`, `detected` or `reached`, or `cap` for a limit."""

    def detail(self) -> dict[str, Any]:
        """The rule's findings, for the `stop` event."""
        return {}


class GivenSteps(LoopRule):
    """Exactly that many steps."""

    name = "steps"

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._left = steps

    def budget(self) -> int:
        return self._left

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        self._left = max(0, self._left - len(step_ns))
        return None if self._left else "given"


class GivenSeconds(LoopRule):
    """Until the first step end at or after that time."""

    name = "seconds"

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._duration_ns = round(seconds * NS_PER_S)

    def budget(self) -> int:
        return OPEN_BUDGET if self._duration_ns else 0

    def deadline_ns(self) -> int | None:
        return self._begin_ns + self._duration_ns

    def add(self, step_ns: Sequence[int], now_ns: int) -> str | None:
        return "given" if now_ns - self._begin_ns >= self._duration_ns else None


def kind_of_rule(
    settings: Mapping[str, Any], where: str, known: Mapping[str, Sequence[str]]
) -> tuple[str, dict[str, Any]]:
    """The rule `settings` ask for, and the settings given: None means absent. ValueError if they do not go together.

    `known`: the settings each rule takes; the rule "" has none that names it.
    """
    if not isinstance(settings, Mapping):
        raise ValueError(f"{where}: {settings!r} is not a table of settings; write for example {{'steps': 100}}")
    given = {key: value for key, value in settings.items() if value is not None}
    kinds = [kind for kind in known if kind in given]
    if len(kinds) > 1:
        raise ValueError(f"{where}: {' and '.join(kinds)} exclude each other; give one")
    kind = kinds[0] if kinds else ""
    for key in given:
        if key not in known[kind]:
            raise ValueError(f"{where}: unknown setting '{key}'; known: {', '.join(known[kind]) or 'none'}")
    return kind, given


def whole(given: Mapping[str, Any], key: str, where: str, at_least: int = 1) -> int:
    """That setting as an integer."""
    value = given[key]
    if isinstance(value, bool) or not isinstance(value, int) or value < at_least:
        raise ValueError(f"{where}: {key} is {value!r}; give a whole number, {at_least} or more")
    return value


def number(given: Mapping[str, Any], key: str, where: str, zero: bool = False) -> float:
    """That setting as a finite number above 0, or 0 if `zero`."""
    value = given[key]
    wrong_kind = isinstance(value, bool) or not isinstance(value, (int, float))
    if wrong_kind or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{where}: {key} is {value!r}; give {'0 or a number above' if zero else 'a number above 0'}")
    return float(value)
