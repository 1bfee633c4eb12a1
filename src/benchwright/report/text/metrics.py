"""Metrics in words: which of them are shown first, what they are called, memory, percentiles and shares of peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchwright.core.efficiency import FLOPS, TOLERATED, Efficiency, share_of_peak
from benchwright.core.metric import describes_work
from benchwright.core.quantities import format_bytes, format_prefixed
from benchwright.core.summary import OF_MODEL, WORDS, Percentile, Summary, headline_metric
from benchwright.report.text.numbers import format_value, share_words
from benchwright.report.text.one_line import one_line

PERCENTILES = (
    "of the single samples of all launches together. They describe these samples; "
    "how well the median over launches is known is what its interval says"
)
NOISY = 0.05  # launches that differ by more than this make a difference of a few per cent invisible
_ASIDE = ("memory.", "cpu.", "process.", "gpu.")
_OF_LOOPS = ("step_time", "wait_time")  # the rate says it all
_DIFFERS = 0.02  # from here on the rate of the median step stands beside the rate
_WAITS_PERCENT = 1.0  # and waiting for data gets a separate line


def headline_metrics(summaries: Sequence[Summary]) -> list[Summary]:
    """The metrics of the user or of the loop, or else the duration; then the series of added samplers."""
    rates = {(s.metric, tuple(s.labels.items())): s.value for s in summaries if _last_word(s) == "rate"}
    shown = [s for s in summaries if not _is_aside(s) and _has_something_to_say(s, rates)]
    sampled = [s for s in shown if s.source == "sampler"]
    measured = [s for s in shown if s.source != "sampler"]
    return [*(measured or [s for s in summaries if s.metric == "process.duration"]), *sampled]


def chosen_metric(summaries: Sequence[Summary], metric: str | None) -> Summary | None:
    """The metric that was asked for, else the one that the benchmark is known by."""
    if metric is None:
        return next(iter(headline_metrics(summaries)), None)
    return next((summary for summary in summaries if summary.metric == metric), None)


def _is_aside(summary: Summary) -> bool:
    """Whether it is about the machine, the workload or a part of a launch."""
    part = "rank" in summary.labels or "process" in summary.labels
    aside = summary.metric.startswith(_ASIDE) or _last_word(summary) in _OF_LOOPS
    return part or aside or describes_work(summary.metric)


def _has_something_to_say(summary: Summary, rates: dict[tuple[str, tuple[tuple[str, str], ...]], float]) -> bool:
    head, _, word = summary.metric.rpartition(".")
    if summary.source != "loop" or word not in ("step_rate", "wait_share"):
        return True
    if head:  # a loop that does not count
        return False
    if word == "wait_share":
        return summary.value >= _WAITS_PERCENT
    rate = rates.get(("rate", tuple(summary.labels.items())))
    return not rate or not abs(summary.value / rate - 1) <= _DIFFERS


def _last_word(summary: Summary) -> str:
    return summary.metric.rpartition(".")[2]


_LABELS = {
    "process.duration": "time",
    "process.cpu_time": "CPU time",
    "process.gpu_time": "GPU time",
    "cpu.step_time": "CPU time of a step",
    "gpu.step_time": "GPU time of a step",
    "step_rate": "median step",
    "step_time": "step time",
    "wait_share": "waiting for data",
    "wait_time": "wait for data",
    "memory.pss": "memory (PSS)",
    "memory.rss": "memory (RSS)",
    "memory.host": "model's peak memory (RSS)",
    "memory.peak_pss": "peak memory (PSS)",
    "memory.peak_rss": "peak memory (RSS)",
    "cpu.use": "CPU use",
    "cpu.idle": "CPU idle",
    "cpu.others": "CPU used by others",
    "cpu.own_share": "share of the CPU time it wanted",
    "cpu.steal": "CPU taken by other virtual machines",
    "cpu.energy": "CPU energy",
    "gpu.load": "GPU load",
    "gpu.others": "GPU used by others",
    "gpu.memory": "GPU memory",
    "gpu.memory_peak": "peak GPU memory",
    "gpu.memory_clock": "GPU memory clock",
    "gpu.clock": "GPU clock",
    "gpu.power": "GPU power",
    "gpu.power_limit": "GPU power limit",
    "gpu.idle_power": "GPU power when idle",
    "energy.item_above_idle": "energy.item above idle",
    "energy.call_above_idle": "energy.call above idle",
    "gpu.temperature": "GPU temperature",
    "gpu.energy": "GPU energy",
}
_BESIDE = {"process.duration": "time of the launch"}
MEMORY = (
    "PSS counts memory that several processes share once; RSS counts it once for each of them, so the RSS of a program "
    "with workers is higher"
)


def metric_label(metric: str) -> str:
    """Its name for people; a program's own name stays as it is."""
    return _LABELS.get(metric, metric)


def metric_name(metric: str, labels: Mapping[str, str], *, beside: bool = False) -> str:
    """`gpu.memory [device 1]`: with what tells it from others of the same name.

    `beside`: the program reports its own figures, so `time` alone would be taken for one of them.
    """
    name = _BESIDE.get(metric) if beside else None
    name = name or metric_label(metric)
    parts = ", ".join(f"{key} {value}" for key, value in labels.items() if key not in ("loop", "bound", "ranks"))
    return f"{name} [{parts}]" if parts else name


def memory_summaries(summaries: Sequence[Summary]) -> list[Summary]:
    """Main memory: the headline (PSS where the kernel tells it) first, then the other; empty if there is none.

    Of a model only its own figure: one number, wherever it is shown.
    """
    found = {s.metric: s for s in reversed(summaries) if s.metric in WORDS}
    first = headline_metric({metric: s.launches for metric, s in found.items()})
    if first == OF_MODEL:
        return [found[OF_MODEL]]
    return sorted(found.values(), key=lambda s: s.metric != first)


def memory_words(summaries: Sequence[Summary]) -> str:
    """`310 MiB PSS, 1.5 GiB RSS`; PSS that only some launches have is left out."""
    peaks = memory_summaries(summaries)
    return ", ".join(one_memory(s) for s in peaks if s.launches >= peaks[0].launches)


def one_memory(summary: Summary) -> str:
    """`310 MiB PSS`. A bound is the kernel's, who looks at each process alone."""
    least, most = ("≤ ", " a process") if "bound" in summary.labels else ("", "")
    return f"{least}{format_bytes(summary.value)} {WORDS[summary.metric]}{most}"


def percentile_name(percentile: Percentile) -> str:
    """`p99`."""
    return f"p{percentile.percent:g}"


def bound_words(percentile: Percentile, unit: str | None) -> str:
    """`at most 12.9 ms`, or why there is no such bound."""
    if percentile.bound is not None:
        side = "at most" if percentile.percent >= 50 else "at least"
        return f"{side} {format_value(percentile.bound, unit)}"
    if percentile.needed is None:
        return "has no bound"
    independent = "independent " if percentile.independent < percentile.samples else ""
    return f"too few {independent}samples for a bound ({percentile.independent:,} of {percentile.needed:,})"


def efficiency_words(e: Efficiency) -> str:
    """`3.2 TFLOP/s in bf16, 38 % of the 8.4 TFLOP/s that matmul-bf16 sustained here`, or why there is no share."""
    done = format_prefixed(e.achieved, e.unit)
    if e.work.kind:
        done += f" in {e.work.kind}" if e.work.quantity == FLOPS else f" {e.work.kind.replace('_', ' ')}"
    if e.per_item != 1:  # an item that is more than the FLOP or byte itself
        done += f" ({format_prefixed(e.per_item, e.unit.removesuffix('/s'))} an item)"
    if e.peak is None:
        return one_line(done)
    if e.share is None:
        return one_line(f"{done}; no share of peak: {e.why_no_share}")
    where = f" in run {e.peak.run}" if e.peak.run is not None else ""
    on = f" on {e.peak.cores:.1f} cores" if e.peak.cores is not None else ""
    peak = f"the {format_prefixed(e.peak.value, e.unit)} that {e.peak.benchmark} sustained here{on}{where}"
    return one_line(f"{done}, {share_words(e.share)} of {peak}")


def efficiency_lines(found: Sequence[Efficiency]) -> list[str]:
    """In words, each kind of work, and which of them limits the benchmark, where that is known."""
    share = share_of_peak(found)
    limits = [share is not None and share.is_limited_by(e.work) for e in found]
    return [efficiency_words(e) + ("; this limits it" if limit else "") for e, limit in zip(found, limits, strict=True)]


def efficiency_doubts(found: Sequence[Efficiency]) -> list[str]:
    """Why there is no share although a peak was measured. More arithmetic than another run found possible: one of the two
    is wrong. In the same run that is a failed check."""
    words = []
    computes = any(e.work.quantity == FLOPS for e in found)
    for e in found:
        if e.peak is None or e.why_no_share is None or (computes and e.work.quantity != FLOPS):
            continue
        limit = e.limit
        more = ""
        if (
            limit is not None
            and limit.run is not None
            and e.achieved > TOLERATED * limit.value
            and e.work.quantity == FLOPS
        ):
            more = f" in run {limit.run}; either the machine can do more than that run found, or too much arithmetic is claimed"
        words.append(one_line(f"no share of peak: {e.why_no_share}{more}"))
    return words
