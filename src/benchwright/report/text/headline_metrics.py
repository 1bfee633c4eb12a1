"""Which metrics of a benchmark are shown first; files and the folded tables have them all."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.results.summary import Summary

_ASIDE = ("memory.", "cpu.", "process.", "gpu.")
_OF_LOOPS = ("step_time", "wait_time")  # the rate says it all
_DIFFERS = 0.02  # from here on the rate of the median step stands beside the rate
_WAITS_PERCENT = 1.0  # and waiting for data has a line of its own


def telling(summaries: Sequence[Summary]) -> list[Summary]:
    """What the user asked for or the loop measured, or else how long it took; then the series of added samplers."""
    rates = {(s.metric, tuple(s.labels.items())): s.value for s in summaries if _last_word(s) == "rate"}
    shown = [s for s in summaries if not is_aside(s) and _has_something_to_say(s, rates)]
    sampled = [s for s in shown if s.source == "sampler"]
    measured = [s for s in shown if s.source != "sampler"]
    return [*(measured or [s for s in summaries if s.metric == "process.duration"]), *sampled]


def is_aside(summary: Summary) -> bool:
    """Whether it tells of the machine or of a part of a launch."""
    part = "rank" in summary.labels or "process" in summary.labels
    return part or summary.metric.startswith(_ASIDE) or _last_word(summary) in _OF_LOOPS


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


def metric_label(metric: str) -> str:
    """What people call it."""
    if metric == "process.duration":
        return "time"
    return {"step_rate": "median step", "wait_share": "waiting for data"}.get(metric, metric)


def _last_word(summary: Summary) -> str:
    return summary.metric.rpartition(".")[2]
