"""The steps of a loop as columns of numbers, not objects, since a loop may have millions of steps."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property

from benchwright.core.columns import ratios
from benchwright.record.stream_file import Event

Samples = Sequence[float]

NS = 1e-9
_GAP_NS = 20_000_000  # a longer gap ends a stretch: something else ran in between
LONG = 4096  # this many samples or more are kept as a column


def samples_of(values: Iterable[float], *, like: Sequence[object] = ()) -> Samples:
    """`values` as samples of a Measurement: a tuple if few, a column if they, or `like`, are many."""
    column = values if isinstance(values, array) and values.typecode == "d" else array("d", values)
    return column if max(len(column), len(like)) >= LONG else tuple(column)


class Items:
    """The items of each step; NaN if unknown. Takes memory only if they differ."""

    def __init__(self) -> None:
        self._count = 0
        self._each: float | None = None
        self._column: array[float] | None = None

    def extend(self, items: object, count: int) -> None:
        """`items` as in a `steps` event: one number for all its steps, a list, or None."""
        added = array("d", map(_number, items)) if isinstance(items, list) else None
        if added is not None and len(added) != count:
            raise ValueError("the number of items does not match the number of steps")
        each = _number(items) if added is None else None
        if self._count == 0:
            self._each, self._column = each, added
        elif self._column is None and each is not None and self._same(each):
            pass
        else:
            column = self.column()
            column.extend(added if added is not None else array("d", [each or 0.0]) * count)
            self._each, self._column = None, column
        self._count += count

    def column(self) -> array[float]:
        """One number for each step."""
        if self._column is not None:
            return self._column
        return array("d", [math.nan if self._each is None else self._each]) * self._count

    def part(self, begin: int, end: int | None = None) -> Items:
        """The items of some of the steps."""
        part = Items()
        part._count = len(range(self._count)[begin:end])
        part._each = self._each
        part._column = None if self._column is None else self._column[begin:end]
        return part

    def each(self) -> Sequence[float]:
        """One number for each step, or a single one if all are equal."""
        return (self._each,) if self._column is None and self._each is not None else self.column()

    @property
    def total(self) -> float | None:
        """The total, or None if any step's number is unknown."""
        if self._count == 0:
            return None
        total = sum(self._column) if self._column is not None else (self._each or 0.0) * self._count
        return None if math.isnan(total) else total

    @property
    def partly_known(self) -> bool:
        return self._column is not None and not all(map(math.isnan, self._column))

    def _same(self, each: float) -> bool:
        return self._each == each or (self._each is not None and math.isnan(self._each) and math.isnan(each))


def _number(items: object) -> float:
    if items is None:
        return math.nan
    if isinstance(items, bool) or not isinstance(items, int | float):
        raise TypeError(f"{items!r} is not a number of items")
    return float(items)


class Steps:
    """Steps of one phase of a loop."""

    def __init__(self) -> None:
        self.seconds: array[float] = array("d")  # by the device's clock if there is one, else the host's
        self.waits: array[float] = array("d")  # of these, spent waiting for data; by the host's clock
        self.items = Items()
        self.host_ns = 0  # by the host's clock, from synchronisation to synchronisation
        self.first_ns: int | None = None
        self.last_ns = 0
        self._batches: list[tuple[int, int, int]] = []  # for each event: start, duration, number of steps

    def __len__(self) -> int:
        return len(self.seconds)

    def add(self, event: Event) -> None:
        """Adds the steps of an event; if they make no sense, raises and adds nothing."""
        host = array("q", event["step_ns"])
        device = event.get("device_ns")
        steps = host if device is None else array("q", device)
        waits = array("q", event["wait_ns"])
        began, host_ns = int(event["t"]), int(event.get("window_ns", sum(host)))
        if not len(host) == len(steps) == len(waits):
            raise ValueError("columns of different lengths")
        self.items.extend(event.get("items"), len(host))
        self.seconds.extend([ns * NS for ns in steps])
        self.waits.extend([ns * NS for ns in waits])
        self.host_ns += host_ns
        if self.first_ns is None:
            self.first_ns = began
        self.last_ns = began + host_ns
        self._batches.append((began, host_ns, len(host)))

    def part(self, begin: int, end: int | None = None) -> Steps:
        """Some of its steps, with the host's time less that of the others."""
        part = Steps()
        part.seconds, part.waits = self.seconds[begin:end], self.waits[begin:end]
        part.items = self.items.part(begin, end)
        others = math.fsum(self.seconds[:begin]) + (0.0 if end is None else math.fsum(self.seconds[end:]))
        part.host_ns = self.host_ns - round(others / NS)
        part.first_ns, part.last_ns = self.first_ns, self.last_ns
        return part

    def drop_last(self) -> None:
        """Removes the last step, if there is one."""
        if not len(self):
            return
        own_ns = round(self.seconds.pop() / NS)
        self.waits.pop()
        began, host_ns, steps = self._batches.pop()
        if steps > 1:
            self._batches.append((began, host_ns - own_ns, steps - 1))
        self.items = self.items.part(0, -1)
        self.host_ns -= own_ns
        self.last_ns -= own_ns
        if not self._batches:
            self.first_ns = None

    def stretches(self) -> list[tuple[int, int]]:
        """Periods in which steps followed each other: epochs, say, if a validation runs in between."""
        found: list[tuple[int, int]] = []
        for began, host_ns, _ in self._batches:
            if found and began - found[-1][1] <= _GAP_NS:
                found[-1] = (found[-1][0], began + host_ns)
            else:
                found.append((began, began + host_ns))
        return found if found or self.first_ns is None else [(self.first_ns, self.last_ns)]

    def until(self, t_ns: int) -> int:
        """How many of its first steps ended by that time."""
        count = 0
        for began, host_ns, steps in self._batches:
            if began + host_ns <= t_ns:
                count += steps
                continue
            end = began
            for seconds in self.seconds[count : count + steps]:
                end += round(seconds / NS)
                if end > t_ns:
                    return count
                count += 1
            return count
        return count

    @cached_property
    def total_s(self) -> float:
        """Of all its steps; asked for when they are complete."""
        return math.fsum(self.seconds)

    @cached_property
    def waiting_s(self) -> float:
        return math.fsum(self.waits)

    @property
    def amount(self) -> float:
        """Items in all; steps where their items are unknown."""
        items = self.items.total
        return float(len(self)) if items is None else items

    def rates(self, *, of_items: bool) -> array[float]:
        """Of each step that took any time."""
        return ratios((1.0,) if not of_items else self.items.each(), self.seconds)

    def rates_over(self, spans: Sequence[tuple[int, int]], *, of_items: bool) -> array[float]:
        """One over the steps of each span: where it begins, and its number of steps."""
        column = self.items.column() if of_items else array("d", [1.0]) * len(self)
        sums = [(math.fsum(column[a : a + k]), math.fsum(self.seconds[a : a + k])) for a, k in spans]
        return array("d", [n / s for n, s in sums if s > 0])

    def spans(self, interval_s: float) -> list[tuple[int, int]]:
        """Divided as the rule of observations does it: a span ends with the step that fills its interval."""
        spans, first, passed = [], 0, 0.0
        for number, seconds in enumerate(self.seconds, start=1):
            passed += seconds
            if passed >= interval_s:
                spans.append((first, number - first))
                first, passed = number, 0.0
        return spans
