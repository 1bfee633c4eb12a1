"""The rate, step times and waits of a loop, the values given in it, and sums over ranks."""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Iterable, Sequence

from benchwright.core.columns import above, difference, median, ordered
from benchwright.core.measurement import DELIVERED, Measurement
from benchwright.core.metric import Direction, describes_work, guess_direction
from benchwright.core.note import Note
from benchwright.core.quantities import format_duration
from benchwright.record.loops.loops import MEASURED, LoopObservations, LoopRecord, settled
from benchwright.record.loops.steps import NS, Samples, Steps, samples_of

# Whether a loop delivers the rate of its median step, and if not, why.
#
# A loop that waits for data now and then, or pauses, delivers less than its median step promises.


NOTEWORTHY = 0.02  # a smaller difference needs no note
_SLOW = 2.0  # times the median: a slow step
_PAUSE = 10.0  # times the median: a pause, not a step


def uneven_pace(loop: str, steps: Steps, median_rate: float, rate: float) -> Note | None:
    """`rate` is items over time, `median_rate` that of the median step; None if they agree."""
    if rate <= 0 or abs(median_rate / rate - 1) <= NOTEWORTHY:
        return None
    reason, figure = _reason(steps)
    less = "less" if median_rate > rate else "more"
    text = f"loop '{loop}' delivers {less} than its median step would, because of {reason}"
    return Note(text=text, evidence=figure)


def _reason(steps: Steps) -> tuple[str, str]:
    """In words, and with its figures."""
    if _waits_explain(steps):
        return "waits for data", f"{_percent(steps.waiting_s / steps.total_s)} of the time"
    usual = median(steps.seconds)
    slower = above(steps.seconds, usual)
    excess = sum(slower) - usual * len(slower)
    longest = max(steps.seconds)
    if longest > _PAUSE * usual and longest - usual > excess / 2:
        return "a pause", f"one step of {format_duration(longest)}, usually {format_duration(usual)}"
    slow = above(slower, _SLOW * usual)
    if sum(slow) - usual * len(slow) > excess / 2:  # a few slow steps explain little if all steps differ
        share, time = len(slow) / len(steps), sum(slow) / steps.total_s
        return "slow steps", f"{_percent(share)} of them take {_percent(time)} of the time"
    in_order = ordered(steps.seconds)
    tenth = len(in_order) // 10
    ends = " to ".join(format_duration(seconds) for seconds in (in_order[tenth], in_order[-1 - tenth]))
    return "bursts", f"most steps take {ends}"


def _waits_explain(steps: Steps) -> bool:
    """Whether the difference all but vanishes without the waits for data."""
    computing = difference(steps.seconds, steps.waits)
    if steps.waiting_s < NOTEWORTHY / 2 * steps.total_s or min(computing) <= 0:
        return False
    with_waits, without = _spread(steps.seconds), _spread(computing, overwrite=True)
    return abs(without) <= max(NOTEWORTHY, abs(with_waits) / 2)


def _spread(times: array[float], *, overwrite: bool = False) -> float:
    """By how much the mean step is longer than the median one."""
    mean = math.fsum(times) / len(times)
    usual = median(times, overwrite=overwrite)
    return mean / usual - 1 if usual > 0 else 0.0


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.0f} %"


_RATES = ("rate", "step_rate")
_WORK_UNITS = {"flops": "FLOP", "bytes": "B"}
_TIME_UNITS = {"ms": "ms", "us": "µs", "ns": "ns", "s": "s", "seconds": "s"}


def loop_measurements(
    record: LoopRecord, labels: dict[str, str], *, prefix: str = ""
) -> tuple[list[Measurement], list[Note]]:
    """Measurements of a loop, and the values given in it; `prefix` marks loops that do not count."""
    measured, warmup, note = settled(record)
    notes = [note] if note else []
    found: list[Measurement] = []
    if len(measured):
        found += _timings(measured, warmup, record.unit, prefix, labels, record.observations)
        notes += _doubts(record, measured, found if not prefix else [])
    elif len(warmup) and not prefix:
        text = f"loop '{record.name}' has a single step, its warm-up, so it has no rate"
        notes.append(Note(text=text, remedy="--warmup 0 counts it"))
    for name, given in record.given.items():
        samples, before = given.measured, given.warmup
        if not all(map(math.isfinite, given.after)):  # a loss that diverges after the measurement counts too
            samples = samples + given.after
        if not len(record.phases[MEASURED]):
            samples, before = given.warmup, array("d")
        if samples or before:
            found.append(given_measurement(prefix + name, name, samples, before, labels))
    return found, notes


def _timings(
    measured: Steps,
    warmup: Steps,
    item: str,
    prefix: str,
    labels: dict[str, str],
    observations: LoopObservations | None,
) -> list[Measurement]:
    """The rate is items over time; `step_rate` is that of the median step."""
    of_items = measured.items.total is not None
    unit = f"{item}/s" if of_items else "steps/s"
    if observations is None:
        rates, before = measured.rates(of_items=of_items), warmup.rates(of_items=of_items)
    else:
        rates = measured.rates_over(observations.spans, of_items=of_items)
        before = warmup.rates_over(warmup.spans(observations.interval_s), of_items=of_items)

    def one(
        metric: str, unit: str, direction: Direction, samples: Samples, warm: Samples = (), value: float | None = None
    ) -> Measurement:
        return Measurement(
            metric=prefix + metric,
            unit=unit,
            direction=direction,
            samples=samples,
            warmup_samples=warm,
            source="loop",
            aggregate="median" if value is None else DELIVERED,
            value=value,
            labels=labels,
        )

    found = [
        one(
            "step_time",
            "s",
            Direction.LOWER,
            samples_of(measured.seconds),
            samples_of(warmup.seconds, like=measured.seconds),
        ),
        one(
            "wait_time",
            "s",
            Direction.LOWER,
            samples_of(measured.waits),
            samples_of(warmup.waits, like=measured.seconds),
        ),
    ]
    if measured.total_s > 0 and rates:
        rate = measured.amount / measured.total_s
        kept = one("rate", unit, Direction.HIGHER, samples_of(rates), samples_of(before, like=rates), rate)
        found.insert(0, kept)
        found.append(one("step_rate", unit, Direction.HIGHER, (median(rates),)))
        waited = measured.waiting_s / max(measured.total_s, measured.host_ns * NS)
        found.append(one("wait_share", "%", Direction.LOWER, (100 * waited,)))
    return found


def _doubts(record: LoopRecord, measured: Steps, found: list[Measurement]) -> list[Note]:
    notes = [] if record.doubt_about_unit is None else [record.doubt_about_unit]
    if measured.items.total is None and measured.items.partly_known:
        text = f"loop '{record.name}': the batch size of some steps is unknown, so the rate counts steps"
        notes.append(Note(text=text))
    if record.device_stride > 1:
        text = f"loop '{record.name}': its steps are too short to time each on the device, so up to {record.device_stride} share an event"
        rest = "step times are means of those, so single steps vary more than they show; rates are exact"
        notes.append(Note(text=f"{text}; {rest}", severity="info"))
    by_name = {m.metric.rpartition(".")[2]: m for m in found}
    if "rate" in by_name and record.observations is None:
        rate, typical = by_name["rate"].value, by_name["step_rate"].samples[0]
        uneven = uneven_pace(record.name, measured, typical, rate) if rate is not None else None
        notes += [uneven] if uneven is not None else []
    return notes


def given_measurement(
    metric: str,
    name: str,
    samples: Iterable[float],
    before: Iterable[float] = (),
    labels: dict[str, str] | None = None,
) -> Measurement:
    """A value that a program gave. Of a time (`ttft_ms`) the median counts; of anything else, such as a loss, the last
    value."""
    describes = describes_work(name)
    time = None if describes or "_" not in name else _TIME_UNITS.get(name.rpartition("_")[2])
    kept = samples_of(samples)
    return Measurement(
        metric=metric,
        unit=_WORK_UNITS.get(name.partition("_per_")[0]) if describes else time,
        direction=Direction.NEITHER if describes else Direction.LOWER if time else guess_direction(name, None),
        samples=kept,
        warmup_samples=samples_of(before, like=kept),
        source="give",
        aggregate="median" if time else "last",
        labels=labels or {},
    )


def over_ranks(found: Sequence[Measurement], ranks: int) -> list[Measurement]:
    """The launch's own rates: the sum of what each of its `ranks` did, of loops that all of them ran."""
    totals = []
    names = dict.fromkeys(m.metric for m in found if m.metric.rpartition(".")[2] in _RATES and m.source == "loop")
    for metric in names:
        parts = [m for m in found if m.metric == metric and "rank" in m.labels and m.samples]
        if len({m.labels["rank"] for m in parts}) == len(parts) == ranks and len({m.unit for m in parts}) == 1:
            whole = sum(_own(m) for m in parts)
            totals.append(
                Measurement(
                    metric=metric,
                    unit=parts[0].unit,
                    direction=Direction.HIGHER,
                    samples=(whole,),
                    source="loop",
                    aggregate=DELIVERED if parts[0].value is not None else "median",
                    value=whole if parts[0].value is not None else None,
                    labels={"loop": parts[0].labels["loop"], "ranks": str(ranks)},
                )
            )
    return totals


def _own(part: Measurement) -> float:
    if part.value is not None:
        return part.value
    return statistics.fmean(part.samples) if part.aggregate == "average" else statistics.median(part.samples)
