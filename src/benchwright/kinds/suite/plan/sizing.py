"""Which batch size `auto_batch(default)` stands for."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import msgspec

from benchwright.core.node.system import Scaling, Sizing
from benchwright.core.numbers.quantities import format_bytes


class BatchSize(msgspec.Struct, frozen=True):
    """`note`: why this size, in one sentence, where the suite does not say."""

    size: int
    note: str | None = None


def choose_batch_size(benchmark: str, default: int, sizing: Sizing, device_bytes: int | None) -> BatchSize:
    """`device_bytes`: the memory of one device, None if it is not known; `sizing.capacity_bytes` goes before it."""
    if sizing.batch_size is not None:
        return BatchSize(max(1, sizing.batch_size), f"batch size {max(1, sizing.batch_size)}, the same for all")
    if sizing.add is not None or sizing.mult is not None:
        changed = int(default * (1.0 if sizing.mult is None else sizing.mult)) + (sizing.add or 0)
        return BatchSize(max(1, changed), f"batch size {max(1, changed)}, changed from {default}")
    if not sizing.optimized and not sizing.auto:
        return BatchSize(max(1, default))
    capacity = sizing.capacity_bytes or device_bytes
    known = sizing.scaling.get(benchmark)
    if known is None:
        why = f"no scaling data for {benchmark}"
        return _default(default, why) if sizing.optimized else BatchSize(1, f"batch size 1: {why}")
    return _optimized(default, known, capacity) if sizing.optimized else _fitted(default, known, sizing, capacity)


def _default(default: int, why: str) -> BatchSize:
    return BatchSize(max(1, default), f"batch size {max(1, default)}, the default: {why}")


def _optimized(default: int, known: Scaling, capacity: int | None) -> BatchSize:
    """The optimum the file states; else the fastest that needs less than `capacity`, of equals the first."""
    if known.optimized is not None:
        return BatchSize(max(1, known.optimized), f"batch size {known.optimized}, the optimized size")
    fitting = [
        (o.perf, o.batch_size)
        for o in known.observations
        if o.perf is not None and o.memory_bytes and (capacity is None or o.memory_bytes < capacity)
    ]
    if not fitting:
        return _default(default, "no optimized size is known")
    best = max(fitting, key=lambda one: one[0])[1]
    return BatchSize(best, f"batch size {best}, the fastest of {len(fitting)} observations")


def _fitted(default: int, known: Scaling, sizing: Sizing, capacity: int | None) -> BatchSize:
    """As milabench chooses, except for what is known not to fit."""
    if capacity is None:
        return _default(default, "the memory of the device is not known")
    points = [(float(o.memory_bytes), float(o.batch_size)) for o in known.observations if o.memory_bytes]
    if len(points) < 2:
        return BatchSize(1, "batch size 1: a fit takes at least two observations with their memory")
    size = rounded(batch_at(capacity, points), multiple=sizing.multiple, power=sizing.power)
    note = f"fitted to {format_bytes(capacity)} from {len(points)} observations"
    largest = int(max(batch for _, batch in points))
    too_large = min((o.batch_size for o in known.observations if o.memory_bytes is None), default=None)
    # Of a device of another capacity, what did not fit says nothing.
    if too_large is not None and sizing.capacity_bytes is None and size >= too_large:
        size = rounded(too_large - 1, multiple=sizing.multiple, power=sizing.power)
        note += f" and below {too_large}, which did not fit"
    if size > largest:
        note += f"; beyond the largest one observed, {largest}: it may not fit"
    return BatchSize(size, f"batch size {size}, {note}")


def batch_at(capacity: float, points: Sequence[tuple[float, float]]) -> float:
    """The batch size at `capacity` on the straight line fitted to (memory, batch size) by least squares.

    All at the same memory: the shortest of the solutions, as numpy.polyfit finds it.
    """
    mean_bytes = fmean(memory for memory, _ in points)
    mean_batch = fmean(batch for _, batch in points)
    spread = sum((memory - mean_bytes) ** 2 for memory, _ in points)
    if spread == 0:
        return mean_batch * (capacity / mean_bytes + 1) / 2
    slope = sum((memory - mean_bytes) * (batch - mean_batch) for memory, batch in points) / spread
    return mean_batch + slope * (capacity - mean_bytes)


def rounded(items: float, *, multiple: int = 1, power: int | None = None) -> int:
    """To the nearest whole number, then down to a multiple, or to a power of `power`; at least 1."""
    whole = int(items)
    if items - whole > 0.5:
        whole += 1
    if whole < 1:
        return 1
    if power is not None and power > 1:
        size = 1
        while size * power <= whole:
            size *= power
        return size
    return max(1, whole // max(1, multiple) * max(1, multiple))
