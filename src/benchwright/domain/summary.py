"""A metric condensed over the launches of a benchmark."""

from __future__ import annotations

import msgspec

from benchwright.domain.metric import Direction


class Interval(msgspec.Struct, frozen=True):
    low: float
    high: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the launches that count. `interval` is None where too few launches can give one."""

    metric: str
    unit: str | None
    direction: Direction
    source: str
    labels: dict[str, str]
    value: float  # median over launches
    launches: int
    values: tuple[float, ...]  # one for each launch, in order
    interval: Interval | None = None

    @property
    def best(self) -> float:
        return min(self.values) if self.direction is Direction.LOWER else max(self.values)

    @property
    def half_width(self) -> float | None:
        """Half the interval as a fraction of the value."""
        if self.interval is None or not self.value:
            return None
        return (self.interval.high - self.interval.low) / 2 / abs(self.value)
