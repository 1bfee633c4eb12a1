"""From the raw samples of launches to the number that a report shows, with its confidence interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchwright.analysis.statistics.intervals import interval_of_median
from benchwright.analysis.statistics.percentiles import slow_end
from benchwright.core.aggregates import aggregate
from benchwright.core.measurement import Measurement
from benchwright.core.run import Launch
from benchwright.core.summary import Percentile, Summary

FEWEST_FOR_INTERVAL = 6  # five launches cannot give a 95 % interval of a median
# Sources whose samples come from one distribution. A given course (a loss) has another aggregate, and a sampler's values
# depend on its clock.
_DISTRIBUTED = ("loop", "log", "import", "give", "model", "client")
_NO_DISTRIBUTION = ("first", "last", "count", "total")


def launch_value(measurement: Measurement, workers: int | None = None) -> float:
    """The launch's one number: the delivered rate, else by the measurement's own method."""
    if measurement.value is not None:
        return measurement.value
    return aggregate(measurement.aggregate, measurement.samples, workers)


def summarize(launches: Sequence[Launch], workers: int | None = None, *, percentiles: bool = True) -> list[Summary]:
    """One Summary for each metric, unit, source and label set, over `launches`, in the order of first appearance.

    `percentiles` take longer than everything else.
    """
    groups: dict[tuple[object, ...], list[Measurement]] = {}
    for launch in launches:
        for m in launch.measurements:
            if m.samples:
                groups.setdefault((m.metric, m.unit, m.source, tuple(sorted(m.labels.items()))), []).append(m)
    return [_summary(same, workers, percentiles) for same in groups.values()]


def _summary(same: Sequence[Measurement], workers: int | None, percentiles: bool) -> Summary:
    first = same[0]
    values = tuple(launch_value(m, workers) for m in same)
    finite = all(math.isfinite(v) for v in values)
    return Summary(
        metric=first.metric,
        unit=first.unit,
        direction=first.direction,
        source=first.source,
        labels=first.labels,
        value=statistics.median(values) if finite else math.nan,
        launches=len(values),
        values=values,
        interval=interval_of_median(values) if finite else None,
        percentiles=_percentiles(same) if percentiles else (),
    )


def _percentiles(same: Sequence[Measurement]) -> tuple[Percentile, ...]:
    first = same[0]
    # A loop's rate would only repeat its step time.
    repeated = first.source == "loop" and first.metric.rpartition(".")[2] == "rate"
    if first.source not in _DISTRIBUTED or first.aggregate in _NO_DISTRIBUTION or repeated:
        return ()
    return slow_end([m.samples for m in same], first.direction)
