"""Deriving the summaries of a run: for each benchmark, metric and labels the number that its report shows.

They are stored with the run, so that a history need not load samples. `store check` derives them again and compares.
"""

from __future__ import annotations

import json
import math
import statistics
import zlib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from benchwright.analysis.comparison.comparable import ComparableRun
from benchwright.analysis.summary import launch_value, summarize
from benchwright.core.benchmark import REVISION, SIDE, Benchmark
from benchwright.core.conditions import GPU_CLOCK, JUDGED_BY, undecided
from benchwright.core.measurement import Measurement
from benchwright.core.metric import is_cpu_time, is_of_the_machine
from benchwright.core.provenance import CodeRevision, revision_words
from benchwright.core.run import Result, Run
from benchwright.core.summary import Summary
from benchwright.report.text.metrics import chosen_metric
from benchwright.store.base import SummaryFilter, SummaryPoint, SummarySeries
from benchwright.store.run_document import hash_of, plain
from benchwright.store.run_query import started_s
from benchwright.store.schema import MAIN

# Raise it when the same samples give other summaries or comparables: `store migrate` then derives them again.
SUMMARY_RULES = 2
TREATMENT = "treatment"
COMMAND = "command"


class RunSummary(NamedTuple):
    """`revision`: of one side of an A/B, its own; None: that of the run."""

    series: SummarySeries
    point: SummaryPoint
    revision: str | None


def condensed(measurement: Measurement, value: float | None) -> Measurement:
    """The same with its one number instead of its samples: all that a summary needs. `value` None: it has none."""
    if value is None or not measurement.samples:
        return replace(measurement, samples=(), warmup_samples=())
    kept = value
    if measurement.metric in JUDGED_BY or measurement.metric == GPU_CLOCK:
        condense = statistics.median if measurement.metric == GPU_CLOCK else statistics.fmean
        try:
            kept = condense(measurement.samples)
        except (ValueError, ArithmeticError):
            kept = math.nan
    return replace(measurement, value=value, samples=(kept,), warmup_samples=())


def condensed_run(run: Run) -> Run:
    """The run with one number for each measurement."""

    def number(measurement: Measurement) -> float | None:
        try:
            return launch_value(measurement, run.workers)
        except (ValueError, ArithmeticError):
            return None

    return with_measurements(
        run, [condensed(m, number(m)) for r in run.results for x in r.launches for m in x.measurements]
    )


def with_measurements(run: Run, measurements: Sequence[Measurement]) -> Run:
    """The run with its measurements replaced, in their order, by the ones given."""
    following = iter(measurements)
    results = tuple(
        replace(
            result,
            launches=tuple(
                replace(launch, measurements=tuple(next(following) for _ in launch.measurements))
                for launch in result.launches
            ),
        )
        for result in run.results
    )
    return replace(run, results=results)


def summaries_of(run: Run, project: str = MAIN) -> Iterator[RunSummary]:
    """Of a condensed run, in the order of its report. Each project has separate series."""
    revision, code = plain(revision_words(run.revisions)), measured_code(run.revisions)
    common: dict[str, Any] = {
        "run": plain(run.id),
        "uid": plain(run.unique_id),
        "started": plain(run.started),
        "started_s": started_s(run.started),
        "ended": None if run.ended is None else plain(run.ended),
    }
    place = 0
    for number, result in enumerate(run.results):
        summaries = summarize(result.counted, run.workers, percentiles=False)
        if not summaries:
            continue
        headline = chosen_metric(summaries, None)
        setting, doubt = _setting(result.benchmark), _doubt(run, result)
        named = result.benchmark.labels.get(REVISION) if result.benchmark.side else None
        named = None if named is None else plain(named)
        for summary in summaries:
            by_load = is_of_the_machine(summary.metric, summary.unit) and not is_cpu_time(summary.metric, summary.unit)
            value = summary.value if math.isfinite(summary.value) else None
            interval = summary.interval
            if interval is not None and not (math.isfinite(interval.low) and math.isfinite(interval.high)):
                interval = None
            point = SummaryPoint(
                **common,
                place=place,
                result=number,
                value=value,
                low=None if interval is None else interval.low,
                high=None if interval is None else interval.high,
                widened=1.0 if interval is None else interval.widened,
                launches=summary.launches,
                headline=summary is headline,
                revision=revision if named is None else named,
                commit=commit_of(code) if named is None else named,
                commit_time=None if code is None or named is not None or code.time is None else plain(code.time),
                doubt=doubt if by_load else None,  # waiting for a core costs no CPU time
            )
            yield RunSummary(_series(run, result.benchmark, summary, setting, project), point, named)
            place += 1


def is_meant(summary: RunSummary, where: SummaryFilter) -> bool:
    """The same rows that the store finds, for a run on disk; `where.runs` and `where.commit` are not looked at."""
    series, glob = summary.series, where.benchmark
    names = [name for name in (series.benchmark, series.pair) if name]
    if glob is not None and not any(fnmatchcase(name, glob) for name in names):
        return False
    right = where.metric in (None, series.metric) and (not where.series or series.id in where.series)
    return right and (summary.point.headline or not where.headline)


def _series(run: Run, benchmark: Benchmark, summary: Summary, setting: dict[str, str], project: str) -> SummarySeries:
    series = SummarySeries(
        id="",
        benchmark=plain(benchmark.name),
        pair=plain(benchmark.pair) if benchmark.side == TREATMENT else "",
        metric=plain(summary.metric),
        labels={plain(key): plain(value) for key, value in summary.labels.items()},
        unit=None if summary.unit is None else plain(summary.unit),
        direction=summary.direction,
        source=plain(summary.source),
        machine=run.machine.fingerprint,
        host=plain(run.machine.hostname),
        setting={plain(key): plain(value) for key, value in setting.items()},
    )
    return replace(series, id=series_id(series, project))


def series_id(series: SummarySeries, project: str = MAIN) -> str:
    """Of everything in which series differ."""
    s = series
    texts = (s.benchmark, s.pair, s.metric, s.unit, s.direction.value, s.source, s.machine, s.host)
    of_project = () if project == MAIN else (project,)
    return hash_of(*texts, sorted(s.labels.items()), sorted(s.setting.items()), *of_project)


def mapping_json(mapping: Mapping[str, str]) -> str:
    """In its own order, in which headings show it."""
    return json.dumps(mapping, ensure_ascii=False)


def _setting(benchmark: Benchmark) -> dict[str, str]:
    """Settings that the numbers depend on besides code and machine. The sides of an A/B run in separate folders: there, the words of the command say nothing."""
    own = {} if benchmark.side else {COMMAND: " ".join((*benchmark.workload.words, *benchmark.workload.variant))}
    labels = {key: value for key, value in benchmark.labels.items() if key not in (SIDE, REVISION)}
    environment = {f"${name}": "not set" if value is None else value for name, value in benchmark.env.items()}
    placed = benchmark.placement
    processes = {"jobs": str(placed.jobs)} if placed.jobs != 1 else {}
    cores = {"cores": ",".join(map(str, placed.cores))} if placed.cores is not None else {}
    return own | environment | processes | cores | labels | benchmark.parameters


def _doubt(run: Run, result: Result) -> str | None:
    found = undecided(result.counted, run.notes)
    return None if found is None else plain(str(found))


def commit_of(code: CodeRevision | None) -> str | None:
    return None if code is None else plain(f"{code.commit}{'+' if code.modified else ''}")


def measured_code(revisions: Sequence[CodeRevision]) -> CodeRevision | None:
    """Of the folder it ran in; of an editable package where there is nothing else."""
    return next((each for each in revisions if not each.packages), next(iter(revisions), None))


def pack_comparable(run: ComparableRun) -> bytes | None:
    """None if it holds what MessagePack cannot, such as text that is not valid Unicode: then the run itself is loaded."""
    try:
        return zlib.compress(msgspec.msgpack.encode(run), level=1)
    except (ValueError, OverflowError, TypeError, RecursionError):
        return None


def unpack_comparable(data: bytes) -> ComparableRun | None:
    """None if it is damaged."""
    try:
        return _decoder().decode(zlib.decompress(data))
    except (zlib.error, ValueError, RecursionError):
        return None


@lru_cache(maxsize=1)
def _decoder() -> msgspec.msgpack.Decoder[ComparableRun]:
    return msgspec.msgpack.Decoder(ComparableRun)
