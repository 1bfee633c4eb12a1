"""Settings of a whole run, kept with it so that it can be resumed."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from benchwright.core.decision import Decision
from benchwright.core.node.system import SuitePaths
from benchwright.core.stop_rule import StopRule

MOST_LAUNCHES = 1_000_000  # of a run; a plan with more is a mistake, or damaged


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`interleave`: launches of all benchmarks alternate in balanced order and form pairs. `turn_s`: the launches of a
    pair start together and take turns of that length."""

    repeat: Annotated[int, Meta(ge=1, le=MOST_LAUNCHES)] = 1
    enough: StopRule | None = None  # when fewer launches than `repeat` will do: seconds, or the precision of the median
    decision: Decision | None = None  # when launches of alternating sides are enough for a verdict
    warmup_runs: Annotated[int, Meta(ge=0, le=MOST_LAUNCHES)] = 0
    interleave: bool = False
    turn_s: float | None = None
    echo: bool = False
    discard_logs: bool = False
    sample_interval_s: Annotated[float, Meta(gt=0)] = 0.5
    grace_s: Annotated[float, Meta(ge=0)] = 5.0
    seed: int = 0
    workers: int | None = None  # $DEEPLEARNING_WORKERS_COUNT, used by two of the driver's compute methods
    suite_paths: SuitePaths | None = None  # of suites
    keep_env: tuple[str, ...] = ()  # --keep-env
    shared: bool = False  # others may read the run's files, as far as the umask allows
    validations: tuple[str, ...] = ()  # validation layers beyond those that always run
    max_memory_bytes: Annotated[int, Meta(gt=0)] | None = None  # --max-memory, of each job
    stop_grace_s: Annotated[float, Meta(ge=0)] = 30.0  # --stop-grace: of a training script that was stopped early
    build_jobs: Annotated[int, Meta(ge=1)] | None = None  # --build-jobs; None: one for every four cores
    lean_cache: bool = False  # --lean-cache: builds are removed once they were measured
    overlap: bool = False  # --overlap: next processes start up while one is measured
    cold: bool = False  # --cold: every process is started afresh
    remote_dir: str | None = None  # --remote-dir: for files sent to machines that do not see the base folder
    on: str | None = None  # --on: the executor, NAME or NAME:ARGUMENT; None: the system file's, else this machine

    @property
    def up_to(self) -> bool:
        """Whether fewer launches than `repeat` may be enough."""
        return self.enough is not None or self.decision is not None
