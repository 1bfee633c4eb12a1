"""From the work a benchmark reports per item (`flops_per_item.bf16`, `bytes_per_item`) or per call of a model to work per
second, and to the share of the machine's peak, which an undisturbed benchmark tagged `peak` sustained on it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from benchwright.analysis.score import process_value
from benchwright.analysis.summary import launch_value
from benchwright.core.conditions import OTHERS_PERCENT, SHARED_NODE
from benchwright.core.efficiency import BYTES, CPU, DEVICE, FLOPS, TOLERATED, Efficiency, Peak, Work
from benchwright.core.launches import by_position
from benchwright.core.measurement import Measurement
from benchwright.core.note import Note
from benchwright.core.quantities import format_prefixed
from benchwright.core.run import Check, CheckStatus, Launch, Result
from benchwright.core.status import Status

PEAK_TAG = "peak"
_QUANTITIES = {"flops_per_item": FLOPS, "bytes_per_item": BYTES, "flops_per_call": FLOPS, "bytes_per_call": BYTES}
LEAST_GOT = 0.95  # share of the CPU time it wanted; with less, a peak shows only what others left over
_SLEEPY = (
    0.2  # of a core over its life; a program that uses less moves bytes as fast even if it sometimes waits for a core
)
# Kinds of notes that disqualify a peak.
_DISTURBED = {"busy", "throttled", "shared", SHARED_NODE, "suspended", "clock"}
_PLAIN_ITEMS = "steps/s"  # the unit of a loop that does not know its items
# Precisions that parts of the work may run in, such as norms and losses under autocast.
_PARTS_IN = {
    "tf32": ("fp32",),
    "bf16": ("tf32", "fp32"),
    "fp16": ("tf32", "fp32"),
    "fp8": ("bf16", "fp16", "tf32", "fp32"),
}


class _Reached(msgspec.Struct, frozen=True):
    """Performance of all processes of one launch together at one kind of work."""

    per_item: float
    sustained: float  # by all processes together
    over: float  # the number of devices, or machines, it had
    used: float  # the same, if each process used one
    cores: float | None  # kept busy, on processors
    doubt: str | None  # why it is not a peak


def peaks_of(results: Iterable[Result], run: str | None = None) -> dict[Work, Peak]:
    """The highest rates of successful benchmarks tagged `peak`, trustworthy ones first. A benchmark pinned to some cores
    does not show the machine's peak."""
    found: dict[Work, Peak] = {}
    for result in results:
        benchmark = result.benchmark
        if PEAK_TAG not in benchmark.tags or result.status is not Status.OK or benchmark.placement.cores is not None:
            continue
        for work, launches in _reached(result).items():
            for x in launches:
                doubt = None if x.doubt is None else Note(text=f"{benchmark.name} {x.doubt}")
                peak = Peak(value=x.sustained / x.used, benchmark=benchmark.name, run=run, cores=x.cores, doubt=doubt)
                if work not in found or _is_better(peak, found[work]):
                    found[work] = peak
    return found


def _is_better(peak: Peak, other: Peak) -> bool:
    return (peak.doubt is None, peak.value) > (other.doubt is None, other.value)


def efficiencies(result: Result, peaks: Mapping[Work, Peak]) -> tuple[Efficiency, ...]:
    """One for each kind of work it reported; arithmetic first."""
    found = []
    for work, launches in _reached(result).items():
        over = statistics.median(x.over for x in launches)
        also = [
            peaks[w] for kind in (work.kind, *_parts_in(work)) if (w := Work(work.quantity, kind, work.place)) in peaks
        ]
        own = peaks.get(work)
        cores = [x.cores for x in launches if x.cores is not None]
        plain = Efficiency(
            work=work,
            cores=max(cores, default=None),
            per_item=launches[0].per_item,
            achieved=statistics.median(x.sustained for x in launches),
            peak=own and _times(own, over),
            limit=_times(max(also, key=lambda p: p.value), over) if own is not None else None,
        )
        found.append(msgspec.structs.replace(plain, why_no_share=_why_no_share(plain)))
    return tuple(sorted(found, key=lambda e: e.work.quantity != FLOPS))


def _why_no_share(e: Efficiency) -> str | None:
    """None if the share of the peak is meaningful."""
    peak = e.peak
    if peak is None:
        return "no trustworthy peak of this kind is known for this machine"
    if peak.doubt is not None:
        return str(peak.doubt)
    if e.peak_had_fewer_cores:
        return f"{peak.benchmark} kept {peak.cores:.1f} cores busy, this one {e.cores:.1f}"
    if e.ratio is not None and e.ratio > TOLERATED:
        more = f"it is {e.ratio * 100:.0f} % of what {peak.benchmark} sustained"
        return f"{more}: caches serve a part of it" if e.work.quantity == BYTES else more
    return None


def run_efficiencies(
    results: Sequence[Result], earlier: Mapping[Work, Peak] | None = None
) -> dict[str, tuple[Efficiency, ...]]:
    """Efficiencies of benchmarks that report their work. `earlier`: peaks of other runs, where this one has none to trust."""
    if not any(_tells(result) for result in results):
        return {}
    peaks = dict(earlier or {})
    for work, peak in peaks_of(results).items():
        if peak.doubt is None or work not in peaks:
            peaks[work] = peak
    found = {r.benchmark.name: efficiencies(r, peaks) for r in results}
    return {name: each for name, each in found.items() if each}


def too_much(found: Sequence[Efficiency]) -> bool:
    """More arithmetic than the machine can do. Bytes are not judged, since caches may serve them."""
    parts = [e.achieved / e.limit.value for e in found if e.limit is not None and e.work.quantity == FLOPS]
    return math.fsum(parts) > TOLERATED


def with_peak_checked(result: Result, peaks: Mapping[Work, Peak]) -> tuple[Check, ...]:
    """Its checks, completed with the peaks of the same run: exceeding them is a failure even without `plausibility`."""
    if result.status is not Status.OK or not peaks:
        return result.checks
    found = [e for e in efficiencies(result, peaks) if e.limit is not None and e.work.quantity == FLOPS]
    if not found:
        return result.checks
    words = " and ".join(_against_limit(e) for e in found)
    if too_much(found):
        status, why = _verdict(found)
        bad = Check(layer="plausibility", status=status, explanation=f"{words}{why}")
        return (*(c for c in result.checks if c.layer != "plausibility"), bad)
    return tuple(
        msgspec.structs.replace(c, explanation=f"{c.explanation}; {words}")
        if c.layer == "plausibility" and c.status is CheckStatus.PASSED
        else c
        for c in result.checks
    )


def _verdict(found: Sequence[Efficiency]) -> tuple[CheckStatus, str]:
    """A failure, unless the peak itself cannot be trusted."""
    doubts = [str(e.limit.doubt) for e in found if e.limit is not None and e.limit.doubt is not None]
    doubts += [e.why_no_share for e in found if e.why_no_share is not None and e.peak_had_fewer_cores]
    if doubts:
        return CheckStatus.WARNED, f", but that is not the machine's peak: {doubts[0]}"
    why = ": it claims too much arithmetic per item, its algorithm saves some, or its steps are timed too short"
    return CheckStatus.FAILED, why


def _against_limit(e: Efficiency) -> str:
    assert e.limit is not None
    share = f"{e.achieved / e.limit.value * 100:.0f} %"
    limit = f"the {format_prefixed(e.limit.value, e.unit)} that {e.limit.benchmark} sustained"
    return f"{format_prefixed(e.achieved, e.unit)} in {e.work.kind or 'unknown precision'} is {share} of {limit}"


def _reached(result: Result) -> dict[Work, list[_Reached]]:
    """The launches of each kind of work, in the order they ran; empty if the items of a step are unknown."""
    if not _tells(result):
        return {}
    found: dict[Work, list[_Reached]] = {}
    for jobs in by_position(result.counted).values():
        for work, reached in _of_launch(jobs, result.benchmark.placement.machines).items():
            found.setdefault(work, []).append(reached)
    return found


def _of_launch(jobs: Sequence[Launch], machines: int) -> dict[Work, _Reached]:
    rates = [_rates(job) for job in jobs]
    if not all(rates):
        return {}
    place = DEVICE if any(map(_on_device, jobs)) else CPU
    busy = [_value(job, "cpu.use") for job in jobs] if place == CPU else [None]
    cores = None if None in busy else math.fsum(x for x in busy if x is not None) / 100
    processes = sum(_ranks(each) for each in rates)
    if place == CPU:
        over = used = float(machines)
    else:
        devices = len({device for job in jobs for device in job.devices}) * machines
        used = float(min(devices, processes) if devices else processes)
        over = used if processes > 1 or not devices else float(devices)
    found = {}
    counts = [_counts(job) for job in jobs]
    for name in dict.fromkeys(name for each in counts for name in each):
        common = next(each[name] for each in counts if name in each)  # of several ranks only the first may report it
        per_item = [each.get(name, common) for each in counts]
        sustained = math.fsum(n * process_value(job, "rate") for n, job in zip(per_item, jobs, strict=True))
        if math.isfinite(sustained) and sustained > 0:
            work = Work(*name, place)
            doubt = next((d for job in jobs if (d := _doubt(job, work)) is not None), None)
            found[work] = _Reached(common, sustained, over, used, cores, doubt)
    return found


def _counts(job: Launch) -> dict[tuple[str, str], float]:
    """The work per item that the program reported, by quantity and kind."""
    found: dict[tuple[str, str], float] = {}
    for m in job.measurements:
        name = _name(m)
        if name is not None and m.samples and name not in found:
            found[name] = launch_value(m)
    return found


def _tells(result: Result) -> bool:
    return any(_name(m) is not None for x in result.counted for m in x.measurements)


def _name(measurement: Measurement) -> tuple[str, str] | None:
    head, _, kind = measurement.metric.partition(".")
    return (_QUANTITIES[head], kind) if head in _QUANTITIES else None


def _rates(job: Launch) -> list[Measurement]:
    """The rates of the whole process or of its ranks; none if they count steps instead of items."""
    found = [m for m in job.measurements if m.metric == "rate" and m.samples]
    whole = [m for m in found if "rank" not in m.labels][:1] or found
    return [] if any(m.unit == _PLAIN_ITEMS for m in whole) else whole


def _ranks(rates: Sequence[Measurement]) -> int:
    ranks = rates[0].labels.get("ranks", "")
    return int(ranks) if ranks.isdigit() else len(rates)


def _doubt(job: Launch, work: Work) -> str | None:
    """Why what it reached is not the machine's peak, as a sentence without its subject."""
    for note in job.notes:
        if note.kind in _DISTURBED and (work.place == CPU or note.kind != "busy"):
            return f"was disturbed: {note.text}" + (f" ({note.evidence})" if note.evidence else "")
    if work.place == DEVICE:
        return None
    cpu_s = _value(job, "process.cpu_time")
    asleep = cpu_s is not None and bool(job.duration_s) and cpu_s < _SLEEPY * (job.duration_s or 0.0)
    if asleep:
        # Waiting for bytes takes no processor; arithmetic does.
        return None if work.quantity == BYTES else "hardly used the processor"
    got = _got(job)
    if got is None:
        return "ran too briefly to tell whether it had its cores to itself; give it a second or more"
    return f"got {got * 100:.0f} % of the CPU time it wanted" if got < LEAST_GOT else None


def _got(job: Launch) -> float | None:
    """The share of the CPU time it wanted that it got, other programs and the hypervisor considered."""
    share, others = _value(job, "cpu.own_share"), _value(job, "cpu.others")
    if share is None and others is None:
        return None
    if others is not None and others < OTHERS_PERCENT:  # the program's threads only waited for each other
        share = 1.0
    return (share if share is not None else 1.0) * (1 - (_value(job, "cpu.steal") or 0.0) / 100)


def _value(job: Launch, metric: str) -> float | None:
    found = job.measurement(metric)
    return launch_value(found) if found is not None and found.samples else None


def _on_device(job: Launch) -> bool:
    loops = job.facts.get("loops")
    return any(loop.get("on_device") for loop in loops) if loops else bool(job.devices)


def _parts_in(work: Work) -> tuple[str, ...]:
    return _PARTS_IN.get(work.kind, ()) if work.quantity == FLOPS else ()


def _times(peak: Peak, over: float) -> Peak:
    return msgspec.structs.replace(peak, value=peak.value * over)
