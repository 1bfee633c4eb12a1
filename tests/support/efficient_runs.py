"""Benchmarks made up for tests that tell how much work an item is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suite_runs import benchmark, launch, measured, result

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.run import Launch, Result


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


def peak(rates: Sequence[float] = (100.0,), bench: str = "matmul", got: float | None = 1.0, **fields: Any) -> Result:
    """Of a benchmark tagged so: one launch with these rates; `got`: of the CPU time it wanted, None if that is not known."""
    more = (*fields.pop("more", ()), *(() if got is None else (own_share(got),)))
    return result(bench, working(*rates, more=more, **fields), of=benchmark(bench, tags=("peak",)))


def own_share(got: float) -> Measurement:
    return measured("cpu.own_share", got, unit="ratio", source="sampler", aggregate="average")


def busy_cores(cores: float) -> Measurement:
    return measured("cpu.use", 100 * cores, unit="%", source="sampler", aggregate="average")
