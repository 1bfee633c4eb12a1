"""How many times as fast as eager a model ran: by throughput, as the table shows it, with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import msgspec

from benchwright.analysis.statistics.intervals import interval_of_median
from benchwright.analysis.statistics.ratio_tests import unpaired_ratio
from benchwright.analysis.summary import FEWEST_FOR_INTERVAL
from benchwright.core.conditions import unlike
from benchwright.core.note import Note
from benchwright.core.run import Result
from benchwright.core.summary import Interval, Summary
from benchwright.report.text.numbers import format_number

MARGIN = 0.02  # what counts as no difference from eager
THROUGHPUT, LATENCY = "throughput", "p50 latency"
_METRICS = {THROUGHPUT: "rate", LATENCY: "latency"}
_CONFIDENCE = 0.95
_QUIET = "measure again on a quiet machine, or alternate the launches: --interleave --repeat 6"
_SLOW_CALLS = "some calls take far longer than the others: look at p99, or measure for longer"


class MeasuredModel(msgspec.Struct, frozen=True):
    """A result and the summaries of its trusted launches."""

    result: Result
    summaries: Sequence[Summary]

    def figure(self, metric: str) -> Summary | None:
        return next((s for s in self.summaries if s.metric == metric), None)


class Speedup(msgspec.Struct, frozen=True, kw_only=True):
    """`basis`: THROUGHPUT (items or calls per second), or LATENCY where the two count different things."""

    value: float
    interval: Interval | None
    basis: str
    doubt: Note | None = None  # why the two are not comparable, or the bases disagree

    @property
    def words(self) -> str:
        """`9.30 [9.18–9.41]`, with ` (p50)` if it is of latencies and ` ?` if it is doubtful."""
        words = f"{self.value:.2f}" if self.value < 99.95 else format_number(round(self.value))
        if self.interval is not None:
            words += f" [{self.interval.low:.2f}–{self.interval.high:.2f}]"
        return words + " (p50)" * (self.basis == LATENCY) + " ?" * (self.doubt is not None)

    @property
    def remark(self) -> Note | None:
        """The meaning of the question mark, and the remedy."""
        if self.doubt is None:
            return None
        remedy = self.doubt.remedy or _QUIET
        why = msgspec.structs.replace(self.doubt, remedy=None)
        return Note(text=f"'vs eager' is doubtful: {why}", remedy=remedy)


def speedup_cells(found: Speedup | None) -> dict[str, object]:
    """For CSV and JSON, by name."""
    interval = found and found.interval
    return {
        "vs_eager": found and found.value,
        "vs_eager_low": interval and interval.low,
        "vs_eager_high": interval and interval.high,
        "vs_eager_basis": found and found.basis,
        "vs_eager_doubt": str(found.doubt) if found and found.doubt else None,
    }


def speedup_over(eager: MeasuredModel, other: MeasuredModel) -> Speedup | None:
    """None if one of the two has no latency.

    Alternating launches share the machine's state, so the ratios within their blocks count; others need like conditions.
    """
    rates = eager.figure("rate"), other.figure("rate")
    same = rates[0] is not None and rates[1] is not None and rates[0].unit == rates[1].unit
    found = _by(THROUGHPUT, eager, other) if same else None
    latency = _by(LATENCY, eager, other)
    if found is None or latency is None or other is eager:
        return found if latency is not None and found is not None else latency
    return found if found.doubt else msgspec.structs.replace(found, doubt=_disagreement(found, latency))


def _by(basis: str, eager: MeasuredModel, other: MeasuredModel) -> Speedup | None:
    metric = _METRICS[basis]
    theirs, ours = eager.figure(metric), other.figure(metric)
    if theirs is None or ours is None:
        return None
    before, after = _by_block(eager, theirs), _by_block(other, ours)
    blocks = [block for block in after if block in before] if other is not eager else []
    ratios = [_faster(basis, before[block], after[block]) for block in blocks]
    known = [ratio for ratio in ratios if ratio is not None]
    if known:
        return Speedup(value=statistics.median(known), interval=interval_of_median(known), basis=basis)
    value = _faster(basis, theirs.value, ours.value)
    if value is None:
        return None
    doubt = None if other is eager else unlike(eager.result.counted, other.result.counted)
    interval = None if other is eager else _interval(basis, theirs.values, ours.values, value)
    return Speedup(value=value, interval=interval, basis=basis, doubt=doubt)


def _interval(basis: str, eager: Sequence[float], other: Sequence[float], value: float) -> Interval | None:
    if min(len(eager), len(other)) < FEWEST_FOR_INTERVAL or not all(v > 0 for v in (*eager, *other)):
        return None
    sides = (eager, other) if basis == THROUGHPUT else (other, eager)
    found = unpaired_ratio(*sides, _CONFIDENCE).interval
    # It is that of the median ratio, which may differ a little from the ratio of the medians in the table.
    return Interval(min(found.low, value), max(found.high, value), found.widened)


def _disagreement(found: Speedup, latency: Speedup) -> Note | None:
    """A few slow calls hardly move the median, but the throughput."""
    if not min(found.value, latency.value) < 1 - MARGIN < 1 + MARGIN < max(found.value, latency.value):
        return None
    words = ("slower", "faster") if found.value < 1 else ("faster", "slower")
    text = f"{words[0]} by {THROUGHPUT} ({found.value:.2f} ×), {words[1]} by {LATENCY} ({latency.value:.2f} ×)"
    return Note(text=text, remedy=_SLOW_CALLS)


def _by_block(measured: MeasuredModel, summary: Summary) -> dict[int, float]:
    """The figure of each launch that was interleaved with others."""
    launches = [
        x
        for x in measured.result.counted
        if any(m.samples and (m.metric, m.labels) == (summary.metric, summary.labels) for m in x.measurements)
    ]
    if len(launches) != len(summary.values):
        return {}
    pairs = zip(launches, summary.values, strict=True)
    return {launch.block: value for launch, value in pairs if launch.block is not None}


def _faster(basis: str, eager: float, other: float) -> float | None:
    up, down = (other, eager) if basis == THROUGHPUT else (eager, other)
    return up / down if down > 0 and math.isfinite(up) else None
