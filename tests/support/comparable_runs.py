"""Runs made of launch values, for comparing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import builders
from builders import launch, measurement

from benchwright.core.benchmark import Benchmark
from benchwright.core.metric import Direction
from benchwright.core.run import Result


def benchmark(name: str = "sort", *argv: str, **fields: Any) -> Benchmark:
    return builders.benchmark(name, *(argv or ("sort", "x")), **fields)


def result(
    of: Benchmark,
    values: Sequence[float] | Sequence[dict[str, float]],
    *,
    direction: Direction = Direction.LOWER,
    blocks: Sequence[int | None] | None = None,
) -> Result:
    """One launch for each value of `time`, or for each set of metrics."""
    sets = [v if isinstance(v, dict) else {"time": v} for v in values]
    places = blocks or [None] * len(sets)
    launches = [
        launch(*(measurement(v, metric=m, unit="s", direction=direction) for m, v in values.items()), block=block)
        for values, block in zip(sets, places, strict=True)
    ]
    return builders.result(of, *launches)
