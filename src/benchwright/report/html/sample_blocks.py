"""Raw samples in few bytes: for each benchmark one compressed block that the page unpacks when it is looked at.

Every value is there, as a 32-bit float (7 significant digits); a series that those cannot hold is kept in 64 bits.
The bytes of each series are laid out plane by plane (all first bytes, all second bytes, …), which compresses far
better, then deflated and written in base64.
"""

from __future__ import annotations

import base64
import math
import sys
import zlib
from array import array
from collections.abc import Sequence
from typing import Any

from benchwright.core.columns import joined, magnitudes, products
from benchwright.core.comparison import Effect
from benchwright.core.job import readable_job
from benchwright.core.measurement import Measurement, in_order
from benchwright.core.run import Launch, Result
from benchwright.core.summary import Summary
from benchwright.report.text.metrics import metric_name
from benchwright.report.text.numbers import plain_number

PRECISION = "32-bit floats (7 significant digits)"
_LARGEST, _SMALLEST = 3.4e38, 1.2e-38  # of a normal 32-bit float
_Key = tuple[str, tuple[tuple[str, str], ...]]


def packed(
    result: Result, summaries: Sequence[Summary], shown: Sequence[Summary | Effect], interval_s: float | None
) -> dict[str, object] | None:
    """All samples of a benchmark and what is needed to draw them, `shown` first, or None if there are none.

    `series`: one for each metric; its `parts` are [launch, warm-up samples, measured samples, the launch's number] and,
    for a loop's rate, the items of each step: it is that by the step time, and its samples are not written again.
    `wide` says 64 bits. `data` holds the other parts' samples one after the other, warm-up first.
    """
    series: dict[_Key, dict[str, Any]] = {}
    blocks: dict[_Key, list[Sequence[float]]] = {}
    known = {_key(s.metric, s.labels): s for s in summaries}
    first = [_key(s.metric, s.labels) for s in shown]
    numbers = {key: iter(s.values) for key, s in known.items()}
    for index, launch in enumerate(result.launches):
        for m in launch.measurements:
            if m.samples or m.warmup_samples:
                key = _key(m.metric, m.labels)
                if key not in series:
                    series[key] = _head(m, known.get(key))
                counts = launch.counts and m.samples
                number = next(numbers[key], None) if counts and key in numbers else None
                part = [index, len(m.warmup_samples), len(m.samples), None if number is None else plain_number(number)]
                items = _items_of_each_step(m, launch)
                series[key]["parts"].append(part if items is None else [*part, items])
                blocks.setdefault(key, []).append(in_order(m) if items is None else ())
    if not series:
        return None
    order = sorted(series, key=lambda key: (key not in first, first.index(key) if key in first else 0))
    raw = bytearray()
    for key in order:
        values = joined(blocks[key])
        series[key]["wide"] = int(not _fit(values))
        raw += _planes(values, wide=bool(series[key]["wide"]))
    return {
        "launches": [[_short(launch, result), launch.status.value, int(launch.warmup)] for launch in result.launches],
        "first": len(first),
        "interval_s": interval_s,
        "series": [series[key] for key in order],
        "data": base64.b64encode(_deflated(bytes(raw))).decode(),
    }


def sample_count(results: Sequence[Result]) -> int:
    return sum(
        len(m.samples) + len(m.warmup_samples) for r in results for launch in r.launches for m in launch.measurements
    )


def _key(metric: str, labels: dict[str, str]) -> _Key:
    return metric, tuple(sorted(labels.items()))


def _head(m: Measurement, summary: Summary | None) -> dict[str, object]:
    interval = summary.interval if summary else None
    return {
        "name": metric_name(m.metric, m.labels),
        "metric": m.metric,
        "labels": m.labels,
        "unit": m.unit,
        "better": m.direction.value,
        "source": m.source,
        "method": m.aggregate,
        "value": plain_number(summary.value) if summary else None,
        "interval": [plain_number(interval.low), plain_number(interval.high)] if interval else None,
        "parts": [],
    }


def _short(launch: Launch, result: Result) -> str:
    """`R0`: the launch's name without the benchmark's."""
    name = readable_job(launch.job).removeprefix(result.benchmark.name + ".")
    return name.removesuffix(".D0") if name != "D0" else "1"


def _fit(values: Sequence[float]) -> bool:
    """Whether 32 bits hold them all."""
    smallest, largest = magnitudes(values)
    return not largest or (smallest >= _SMALLEST and largest <= _LARGEST)


def _items_of_each_step(m: Measurement, launch: Launch) -> float | None:
    """How many items every step had, if `m` is the rate of a loop and its step times tell the same."""
    if m.source != "loop" or not m.metric.endswith("rate"):
        return None
    name = m.metric.removesuffix("rate") + "step_time"
    steps = next((x for x in launch.measurements if x.metric == name and x.labels == m.labels), None)
    if steps is None or (len(steps.samples), len(steps.warmup_samples)) != (len(m.samples), len(m.warmup_samples)):
        return None
    rates, times = in_order(m), in_order(steps)
    items = rates[0] * times[0]
    near = 1e-9 * abs(items)
    found = products(rates, times)
    same = abs(min(found) - items) <= near and abs(max(found) - items) <= near
    return items if same and math.isfinite(items) and items else None


def _planes(values: Sequence[float], *, wide: bool) -> bytes:
    numbers = array("d" if wide else "f", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    flat = numbers.tobytes()
    return b"".join(flat[byte :: numbers.itemsize] for byte in range(numbers.itemsize))


def _deflated(raw: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(raw) + packer.flush()
