"""What a user may say about how any benchmark is to be measured, whatever it was read from."""

from __future__ import annotations

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.stop_rule import StopRule, Warmup


class MeasureOptions(msgspec.Struct, frozen=True, kw_only=True):
    """None, or empty: the benchmark's own setting stays."""

    stop: StopRule | None = None
    warmup: Warmup | None = None
    loop: str | None = None
    timeout_s: float | None = None
    env: dict[str, str | None] = {}
    cores: tuple[int, ...] | None = None
    jobs: int | None = None
    labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    ignore_failure: bool = False

    def applied(self, benchmark: Benchmark) -> Benchmark:
        """`benchmark` with these options laid over it."""
        replace = msgspec.structs.replace
        placement = benchmark.placement
        if self.cores is not None:
            placement = replace(placement, cores=self.cores)
        if self.jobs is not None:
            placement = replace(placement, jobs=self.jobs)
        return replace(
            benchmark,
            placement=placement,
            stop=self.stop or benchmark.stop,
            warmup=self.warmup or benchmark.warmup,
            loop=self.loop or benchmark.loop,
            timeout_s=benchmark.timeout_s if self.timeout_s is None else self.timeout_s,
            env=benchmark.env | self.env,
            labels=benchmark.labels | self.labels,
            tags=tuple(dict.fromkeys((*benchmark.tags, *self.tags))),
            ignore_failure=benchmark.ignore_failure or self.ignore_failure,
        )
