"""A Measurement: one metric of one launch, with its raw samples."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.columns import first_not_finite
from benchwright.core.metric import Direction

DELIVERED = "delivered"  # the aggregate of a rate: items over time, not a summary of the rates of single steps


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """Raw samples of one metric, in the order they were taken: a tuple, or an array for very many.

    `warmup_samples` come first and do not count. `aggregate` names the method that condenses `samples` to the launch's
    one number; `value` is that number where the samples alone cannot give it, as for a rate (items over time).
    `source`: loop, give, log, sampler, process, model, client or import.
    """

    metric: str
    unit: str | None
    direction: Direction
    samples: Sequence[float]
    source: str
    aggregate: str = "median"
    warmup_samples: Sequence[float] = ()
    labels: dict[str, str] = {}
    value: float | None = None

    def __post_init__(self) -> None:
        for name in ("samples", "warmup_samples"):
            if isinstance(values := getattr(self, name), list):  # as a decoder makes it
                msgspec.structs.force_setattr(self, name, tuple(values))


def first_bad_sample(measurement: Measurement) -> tuple[int, float] | None:
    """Index (counted from the first warm-up sample) and value of the first sample that is NaN or infinite."""
    before = measurement.warmup_samples
    place = first_not_finite(before)
    if place is not None:
        return place, before[place]
    place = first_not_finite(measurement.samples)
    return None if place is None else (len(before) + place, measurement.samples[place])


def in_order(measurement: Measurement) -> Sequence[float]:
    """All samples, warm-up first."""
    before, measured = measurement.warmup_samples, measurement.samples
    if type(before) is type(measured):
        return before + measured  # type: ignore[operator,no-any-return]
    return (*before, *measured) if before else measured
