"""A Run: everything one invocation measured, on one machine, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.decision import Decision
from benchwright.core.job import Job
from benchwright.core.machine import Machine
from benchwright.core.measurement import Measurement
from benchwright.core.note import Note
from benchwright.core.provenance import CodeRevision
from benchwright.core.status import Reason, Status


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One job that ran, and what it measured."""

    job: str
    status: Status
    reason: Reason | None = None
    detail: str | None = None
    warmup: bool = False
    launch: int | None = None
    block: int | None = None
    position: int = 0
    devices: tuple[int, ...] = ()
    duration_s: float | None = None
    exit_code: int | None = None
    measurements: tuple[Measurement, ...] = ()
    notes: tuple[Note, ...] = ()
    facts: dict[str, Any] = {}  # what the probe saw: python, packages, loops, overlap…

    def measurement(self, metric: str) -> Measurement | None:
        """The metric of all ranks together if there is one, else the first rank's."""
        found = [m for m in self.measurements if m.metric == metric]
        return next((m for m in found if "rank" not in m.labels), found[0] if found else None)

    @property
    def counts(self) -> bool:
        """Whether it succeeded, is no warm-up, and had something to report."""
        return self.status is Status.OK and not self.warmup and (not self.facts or self.reports)

    @property
    def reports(self) -> bool:
        """False for a worker for which another process reports, and for a helper that reported nothing."""
        return self.facts.get("reports", True) is True

    @property
    def measured_enough(self) -> bool:
        """Whether a stop rule ended a loop before it ended by itself, or the early stop of another instrument was reached."""
        stops = [loop.get("stop") for loop in self.facts.get("loops") or ()]
        by_rule = any(
            s and s.get("by") != "loop" and (s.get("detail") or {}).get("reached") is not False for s in stops
        )
        return by_rule or bool((self.facts.get("reported") or {}).get("early_stop"))


class CheckStatus(str, Enum):
    PASSED = "passed"
    FAILED = "failed"
    WARNED = "warned"
    NOT_APPLICABLE = "not_applicable"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A validation layer's verdict. `explanation`: one sentence with the figures behind it."""

    layer: str  # error, ensure_rate, loss, usage, planning, version, plausibility…
    status: CheckStatus
    explanation: str


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A Benchmark's launches and its overall status."""

    benchmark: Benchmark
    status: Status
    reason: Reason | None = None
    detail: str | None = None
    launches: tuple[Launch, ...] = ()
    overlap: float | None = None  # share of the time in which all jobs of a launch were measured; the worst launch
    checks: tuple[Check, ...] = ()  # by validation layers

    @property
    def counted(self) -> tuple[Launch, ...]:
        """The launches that count: successful, not warm-up, and with something to report."""
        return tuple([x for x in self.launches if x.counts])

    @property
    def turn_s(self) -> float | None:
        """The length of its turns, if it took turns with others."""
        loops = (loop for launch in self.counted for loop in launch.facts.get("loops", ()))
        return next((stop["turn_s"] for loop in loops if (stop := loop.get("stop") or {}).get("turn_s")), None)


def why(ended: Result | Launch) -> str:
    """`out of memory: CUDA has none left`: how it ended, and the detail."""
    words = ended.reason.words if ended.reason else ended.status.value
    return f"{words}: {ended.detail}" if ended.detail else words


def culprit(launches: Sequence[Launch]) -> Launch | None:
    """The most telling failure of the first failed launch: a job that failed by itself comes before one that timed out
    waiting, and that before one that failed because of another."""
    failed = [x for x in launches if not x.warmup and x.status is Status.FAILED]
    together = [x for x in failed if x.position == failed[0].position]
    telling = (Reason.PARTNER_FAILED, Reason.TIMED_OUT)
    return max(together, key=lambda x: telling.index(x.reason) if x.reason in telling else len(telling), default=None)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a run: its benchmarks, and the launches in order; a launch is the jobs that run together."""

    benchmarks: tuple[Benchmark, ...]
    launches: tuple[tuple[Job, ...], ...]
    skipped: dict[str, tuple[Reason, str]] = {}  # benchmark name → why it will not run
    up_to: bool = False  # fewer launches may be enough
    notes: dict[str, tuple[str, ...]] = {}  # benchmark name → the planner's remarks, one sentence each


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one invocation, as read from the files in `folder`, which are the truth."""

    id: str  # the folder's name: <name>.<time>
    uid: str = ""  # unique, wherever the run was made; imported results have none
    name: str
    started: str  # ISO 8601 with zone
    folder: str
    status: Status
    machine: Machine
    results: tuple[Result, ...]
    ended: str | None = None
    labels: dict[str, str] = {}
    notes: tuple[Note, ...] = ()
    workers: int | None = None  # the number of workers, as given; `total` and `average_aggregate` use it
    packages: dict[str, dict[str, str]] = {}  # interpreter → package → version
    revisions: tuple[CodeRevision, ...] = ()  # of the folder it ran in, its scripts and its editable packages
    decision: Decision | None = None  # the rule of an A/B: how its sides are compared

    @property
    def unique_id(self) -> str:
        """The `uid`; for imported results and old runs, which have none, the id."""
        return self.uid or self.id

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    def result(self, name: str) -> Result:
        """The result of the benchmark `name`; KeyError if there is none."""
        for result in self.results:
            if result.benchmark.name == name:
                return result
        raise KeyError(name)
