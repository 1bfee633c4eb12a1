"""How a run is to be made: the same for all its benchmarks, kept with the run so that it can be resumed."""

from __future__ import annotations

import msgspec

from benchwright.domain.system import Surroundings


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`interleave`: launches of all benchmarks alternate in balanced order, and are recorded as pairs. `turn_s`: those of a pair
    are started together and take turns of that length."""

    repeat: int = 1
    warmup_runs: int = 0
    interleave: bool = False
    turn_s: float | None = None
    echo: bool = False
    discard_logs: bool = False
    sample_interval_s: float = 0.5
    grace_s: float = 5.0
    seed: int = 0
    workers: int | None = None  # of $DEEPLEARNING_WORKERS_COUNT, which two of the driver's compute methods use
    surroundings: Surroundings | None = None  # of suites
    validations: tuple[str, ...] = ()  # validation layers asked for beyond those that always run
