"""Benchmarks made up for tests that tell how much work an item is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suite_runs import benchmark, launch, measured, result

from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction
from benchwright.domain.run import Launch, Result


def told(value: float, name: str = "flops_per_item.fp32") -> Measurement:
    return Measurement(
        metric=name, unit=None, direction=Direction.NEITHER, samples=(value,), source="give", aggregate="last"
    )


def working(*rates: float, per_item: float = 1.0, name: str = "flops_per_item.fp32", **fields: Any) -> Launch:
    """A process of such a benchmark; `on_device`: its steps were timed there."""
    on_device = fields.pop("on_device", None)
    more = (*fields.pop("more", ()), told(per_item, name))
    if on_device is not None:
        fields["facts"] = {"started": True, "loops": [{"name": "train", "on_device": on_device}]}
    return launch(*rates, more=more, **fields)


def peak(rates: Sequence[float] = (100.0,), bench: str = "matmul", **fields: Any) -> Result:
    """Of a benchmark tagged so: one launch with these rates."""
    return result(bench, working(*rates, **fields), of=benchmark(bench, tags=("peak",)))


def disturbed(share: float) -> Measurement:
    return measured("cpu.own_share", share, unit="ratio", source="sampler", aggregate="average")
