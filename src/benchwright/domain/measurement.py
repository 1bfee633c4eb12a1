"""A Measurement: one metric of one launch, with its raw samples."""

from __future__ import annotations

import msgspec

from benchwright.domain.metric import Direction


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """Raw samples of one metric, in the order they were taken.

    `warmup_samples` came before the measured ones and are kept, marked. `aggregate` names the method
    that condenses `samples` to the launch's one number. `source`: loop, give, log, sampler or process.
    """

    metric: str
    unit: str | None
    direction: Direction
    samples: tuple[float, ...]
    source: str
    aggregate: str = "median"
    warmup_samples: tuple[float, ...] = ()
    labels: dict[str, str] = {}
