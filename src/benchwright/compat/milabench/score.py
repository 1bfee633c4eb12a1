"""milabench's own figures for a run, warm-up and its bias included, so that old and new reports can be compared."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from benchwright.core.measurement import Measurement
from benchwright.core.run import Launch, Result, Run, why

_FEWEST_TO_TRIM = 5
_MIB = 2**20


class _Figures(NamedTuple):
    mean: float
    std: float
    sem: float


class MilabenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark as in milabench's report. `perf`, `std` and `sem` are NaN without rates."""

    name: str
    n: int = 0
    fail: int = 0
    ngpu: int = 0
    perf: float = math.nan
    std: float = math.nan
    sem: float = math.nan
    peak_memory_mib: float | None = None
    energy_kj: float | None = None  # of the first process, as in milabench's report
    perf_watt: float | None = None  # perf for each kilowatt of the first process
    score: float = 0.0
    weight: float
    enabled: bool
    per_device: dict[str, float] = {}  # device → mean

    @property
    def counts(self) -> float:
        """Its weight in the suite's score."""
        return self.weight if self.enabled else 0.0


class MilabenchScore(msgspec.Struct, frozen=True, kw_only=True):
    """milabench's figures for a run. `value` is NaN if no benchmark has a weight."""

    value: float
    rows: tuple[MilabenchRow, ...]
    failure_rate: float
    price: float | None = None
    left_out: tuple[str, ...] = ()  # benchmarks that milabench's report does not know, each with why

    @property
    def passed(self) -> bool:
        return self.failure_rate <= 0.01

    @property
    def price_per_score(self) -> float | None:
        return self.price / self.value if self.price is not None and self.value > 0 else None


def milabench_score(
    run: Run, *, weights: Mapping[str, float] | None = None, price: float | None = None
) -> MilabenchScore:
    """`weights`, by name, override the run's own; a benchmark that has one, be it 0, but was not run has a row
    with score 0."""
    given = weights or {}
    # milabench knows only benchmarks that left a finished file or have a weight in the suite.
    rows = [milabench_row(r, given.get(r.benchmark.name)) for r in run.results if _counted(r)]
    known = {row.name for row in rows}
    missing = {name: weight for name, weight in given.items() if name not in known}
    rows += [MilabenchRow(name=name, weight=weight, enabled=True) for name, weight in missing.items()]
    shown = {row.name for row in rows}
    failures, launches = sum(row.fail for row in rows), sum(row.n for row in rows)
    return MilabenchScore(
        value=score_of(rows),
        rows=tuple(rows),
        failure_rate=failures / max(launches, 1),
        price=price,
        left_out=tuple(f"{r.benchmark.name} ({why(r)})" for r in run.results if r.benchmark.name not in shown),
    )


def score_of(rows: Sequence[MilabenchRow]) -> float:
    """The weighted geometric mean of score + 1."""
    total = math.fsum(row.counts for row in rows)
    if not total or any(row.counts and row.score <= -1 for row in rows):  # a foreign file may have a negative rate
        return math.nan
    return math.exp(math.fsum(row.counts * math.log(row.score + 1) for row in rows) / total)


def milabench_row(result: Result, weight: float | None = None) -> MilabenchRow:
    """Pools the rates of all launches, failed ones too."""
    launches = _counted(result)
    facts = [_facts(x) for x in launches]
    pooled: list[float] = []
    by_device: dict[str, list[float]] = {}
    for launch, fact in zip(launches, facts, strict=True):
        rates = _rates(launch)
        pooled += rates
        if (device := _device(result, launch, fact)) is not None:
            by_device.setdefault(device, []).extend(rates)
    failed = sum(1 for launch, fact in zip(launches, facts, strict=True) if not _succeeded(launch, fact))
    figures = _figures(pooled)
    energy = _energy(result, launches[0]) if launches else None
    per_device = {device: _figures(rates).mean for device, rates in by_device.items()}
    whole = math.fsum(v for v in per_device.values() if not math.isnan(v))
    score = (whole if whole > 0 else figures.mean) * (1 - failed / max(len(launches), 1))
    # Of several runs, the last one's.
    stated: Mapping[str, Any] = next((f for f in reversed(facts) if f.get("weight") is not None), {})
    own = float(stated["weight"]) if stated else result.benchmark.weight
    return MilabenchRow(
        name=result.benchmark.name,
        n=len(launches),
        fail=failed,
        ngpu=max((_ngpu(result, launch) for launch in launches), default=0),
        perf=figures.mean,
        std=figures.std / figures.mean if figures.mean else math.nan,
        sem=figures.sem / figures.mean if figures.mean else math.nan,
        peak_memory_mib=_peak_memory(launches),
        energy_kj=energy[0] if energy else None,
        perf_watt=figures.mean * energy[1] / energy[0] if energy and energy[0] > 0 else None,
        score=0.0 if math.isnan(score) else score,
        weight=own if weight is None else weight,
        enabled=bool(facts[-1].get("enabled", result.benchmark.enabled)) if facts else result.benchmark.enabled,
        per_device=per_device,
    )


def _counted(result: Result) -> list[Launch]:
    """The launches that milabench's report reads; of files that milabench wrote, the finished ones."""
    return [x for x in result.launches if not x.warmup and _facts(x).get("counted", True)]


def _figures(values: Sequence[float]) -> _Figures:
    """With five or more values, without the smallest and the largest."""
    if not values:
        return _Figures(math.nan, math.nan, math.nan)
    kept = _trimmed(values)
    if not all(map(math.isfinite, kept)):
        return _Figures(math.nan, math.nan, math.nan)
    mean, std = statistics.fmean(kept), statistics.pstdev(kept)
    return _Figures(mean, std, std / math.sqrt(len(kept)))


def _trimmed(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return ordered[1:-1] if len(ordered) >= _FEWEST_TO_TRIM else ordered


def _rates(launch: Launch) -> list[float]:
    """All rates of the process, warm-up included; of several ranks, their joint rates."""
    found = [m for m in launch.measurements if m.metric == "rate"]
    whole = next((m for m in found if "rank" not in m.labels), None)
    return [] if whole is None else _whole(whole)


def _facts(launch: Launch) -> Mapping[str, Any]:
    """The facts of an imported run; empty for our own."""
    facts = launch.facts.get("milabench")
    return facts if isinstance(facts, dict) else {}


def _device(result: Result, launch: Launch, facts: Mapping[str, Any]) -> str | None:
    if "device" in facts:
        return None if facts["device"] is None else str(facts["device"])
    alone = result.benchmark.placement.per_device and len(launch.devices) == 1
    return str(launch.devices[0]) if alone else None


def _ngpu(result: Result, launch: Launch) -> int:
    """Of one process: 1 of a plan for each GPU, else all that it was given."""
    found = _facts(launch).get("ngpu")
    return found if isinstance(found, int) else 1 if result.benchmark.placement.per_device else len(launch.devices)


def _energy(result: Result, launch: Launch) -> tuple[float, float] | None:
    """Kilojoules of its accelerators, and in how many seconds; None if nobody recorded their power."""
    facts = _facts(launch)
    if facts:
        found = facts.get("energy")
        return (float(found[0]), float(found[1])) if isinstance(found, list | tuple) and len(found) == 2 else None
    device = _device(result, launch, facts)
    used = [
        m.samples[-1]
        for m in launch.measurements
        if m.metric == "gpu.energy" and m.samples and device in (None, m.labels.get("device"))
    ]
    return (math.fsum(used) / 1000, launch.duration_s) if used and launch.duration_s else None


def _succeeded(launch: Launch, facts: Mapping[str, Any]) -> bool:
    """milabench's rule: it reached the early stop, or has exit code 0, rates and no NaN loss; a worker without a log (`nolog`)
    is always a success."""
    if "success" in facts:
        return bool(facts["success"])
    if launch.measured_enough or not launch.reports:
        return True
    losses = [v for m in launch.measurements if m.metric == "loss" for v in _whole(m)]
    return launch.exit_code == 0 and bool(_rates(launch)) and not any(map(math.isnan, losses))


def _peak_memory(launches: Sequence[Launch]) -> float | None:
    """The second-largest value of each device while it was busy."""
    used: dict[str, list[float]] = {}
    for launch in launches:
        loads = {m.labels.get("device"): m for m in launch.measurements if m.metric == "gpu.load"}
        for m in launch.measurements:
            if m.metric == "gpu.memory":
                device = m.labels.get("device")
                series = _whole(m)
                load = _whole(loads[device]) if device in loads else []
                busy = load if len(load) == len(series) else [1.0] * len(series)
                used.setdefault(str(device), []).extend(v for v, share in zip(series, busy, strict=True) if share)
    peaks = [_trimmed(values)[-1] for values in used.values() if values]
    return max(peaks) / _MIB if peaks else None


def _whole(measurement: Measurement) -> list[float]:
    return [*measurement.warmup_samples, *measurement.samples]
