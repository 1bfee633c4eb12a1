"""A Run: everything one invocation measured, on one machine, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.job import Job
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement
from benchwright.core.note import Note
from benchwright.core.results.check import Check
from benchwright.core.status import Reason, Status


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One job that ran, and what it measured."""

    job: str
    status: Status
    reason: Reason | None = None
    detail: str | None = None
    warmup: bool = False
    repeat: int | None = None
    block: int | None = None
    position: int = 0
    devices: tuple[int, ...] = ()
    duration_s: float | None = None
    exit_code: int | None = None
    measurements: tuple[Measurement, ...] = ()
    notes: tuple[Note, ...] = ()
    facts: dict[str, Any] = {}  # what the probe saw: python, packages, loops, overlap…

    def measurement(self, metric: str) -> Measurement | None:
        """Of a metric that each rank has, the one of all together, if there is one."""
        found = [m for m in self.measurements if m.metric == metric]
        return next((m for m in found if "rank" not in m.labels), found[0] if found else None)

    @property
    def measured_enough(self) -> bool:
        """Whether a loop was ended by its rule, and not by itself before that, or the early stop of voir was reached."""
        stops = [loop.get("stop") for loop in self.facts.get("loops") or ()]
        by_rule = any(
            s and s.get("by") != "loop" and (s.get("detail") or {}).get("reached") is not False for s in stops
        )
        return by_rule or bool((self.facts.get("voir") or {}).get("early_stop"))


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A Benchmark's launches and its overall status."""

    benchmark: Benchmark
    status: Status
    reason: Reason | None = None
    detail: str | None = None
    launches: tuple[Launch, ...] = ()
    overlap: float | None = (
        None  # jobs that ran together: the share of the time in which all were measured; the worst launch
    )

    checks: tuple[Check, ...] = ()  # what validation found

    @property
    def counted(self) -> tuple[Launch, ...]:
        """The launches that count: not warm-up, and ended well."""
        return tuple(x for x in self.launches if not x.warmup and x.status is Status.OK)

    @property
    def turn_s(self) -> float | None:
        """How long its turns were, if it took turns with others."""
        loops = (loop for launch in self.counted for loop in launch.facts.get("loops", ()))
        return next((stop["turn_s"] for loop in loops if (stop := loop.get("stop") or {}).get("turn_s")), None)


def culprit(launches: Sequence[Launch]) -> Launch | None:
    """The failed one that tells most: of those that ran together, rather one that failed by itself than one that only
    waited until time was up, and rather that than one which failed because of another."""
    failed = [x for x in launches if not x.warmup and x.status is Status.FAILED]
    together = [x for x in failed if x.position == failed[0].position]
    telling = (Reason.PARTNER_FAILED, Reason.TIMED_OUT)
    return max(together, key=lambda x: telling.index(x.reason) if x.reason in telling else len(telling), default=None)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run will do: its benchmarks and the launches in their order; each launch is jobs that run together."""

    benchmarks: tuple[Benchmark, ...]
    launches: tuple[tuple[Job, ...], ...]
    skipped: dict[str, tuple[Reason, str]] = {}  # benchmark name → why it will not run
    notes: dict[str, tuple[str, ...]] = {}  # benchmark name → what planning chose for it, one sentence each


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """`folder` holds its files and is the truth; this is what they say."""

    id: str  # the folder's name: <name>.<time>
    uid: str = ""  # told apart from every other run by this, wherever they were made; imported results have none
    name: str
    started: str  # ISO 8601 with zone
    folder: str
    status: Status
    machine: Machine
    results: tuple[Result, ...]
    ended: str | None = None
    labels: dict[str, str] = {}
    notes: tuple[Note, ...] = ()
    workers: int | None = None  # what the run was told about its workers; `total` and `average_aggregate` use it
    packages: dict[str, dict[str, str]] = {}  # for each interpreter that was measured: package → version

    @property
    def unique_id(self) -> str:
        """Its `uid`; of imported results, and runs that were made before there were any, the id."""
        return self.uid or self.id

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    def result(self, name: str) -> Result:
        """The result of the benchmark called `name`; KeyError if there is none."""
        for result in self.results:
            if result.benchmark.name == name:
                return result
        raise KeyError(name)
