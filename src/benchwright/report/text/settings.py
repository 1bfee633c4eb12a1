"""How a benchmark and a run were set up, in words: never by the names of fields."""

from __future__ import annotations

from benchwright.core.benchmark import Placement
from benchwright.core.numbers.quantities import format_duration
from benchwright.core.settings import RunSettings
from benchwright.core.stop_rule import StopRule, Warmup
from benchwright.report.text.numbers import counted


def stop_words(rule: StopRule | None) -> str:
    if rule is None:
        return "runs to its end"
    if rule.steps is not None:
        return f"after {counted(rule.steps, 'measured step')}"
    if rule.seconds is not None:
        return f"after {format_duration(rule.seconds)} of measuring"
    if rule.observations is not None:
        return f"after {counted(rule.observations, 'rate')}, each over {format_duration(rule.interval_s)}"
    most = [counted(rule.max_steps, "step")] if rule.max_steps is not None else []
    most += [format_duration(rule.max_seconds)] if rule.max_seconds is not None else []
    words = f"when the median is known within ± {(rule.precision or 0) * 100:g} %, after {rule.min_steps} steps or more"
    return words + (f", {' or '.join(most)} at most" if most else "")


def warmup_words(warmup: Warmup) -> str:
    if warmup.steps is not None:
        return counted(warmup.steps, "step")
    if warmup.seconds is not None:
        return format_duration(warmup.seconds)
    return f"detected, {format_duration(warmup.max_seconds)} at most"


def placement_words(placement: Placement) -> str:
    """Empty for one process anywhere."""
    words = []
    if placement.per_device:
        words.append("one process on each device")
    elif placement.jobs > 1:
        words.append(f"{placement.jobs} processes side by side")
    if placement.machines > 1:
        words.append(f"on {placement.machines} machines")
    if placement.needs_devices:
        words.append(f"needs {counted(placement.needs_devices, 'device')}")
    if placement.cores is not None:
        words.append(f"pinned to cores {', '.join(map(str, placement.cores))}")
    return ", ".join(words)


def settings_rows(settings: RunSettings) -> list[tuple[str, str]]:
    """What was asked for; what nobody asked for is left out, but for how often launches and samples were taken."""
    rows = {
        "Launches of each": str(settings.repeat),
        "Warm-up launches": str(settings.warmup_runs or ""),
        "Order": "launches of all benchmarks alternate" if settings.interleave else "",
        "Turns": "" if settings.turn_s is None else format_duration(settings.turn_s),
        "Sampled every": format_duration(settings.sample_interval_s),
        "Time to exit": format_duration(settings.grace_s),
        "Seed": str(settings.seed),
        "Workers": "" if settings.workers is None else str(settings.workers),
        "Measured on": settings.on or "",
        "Further checks": ", ".join(settings.validations),
        "Recorded variables": ", ".join(settings.keep_env),
        "Logs": "not kept" if settings.discard_logs else "",
    }
    return [(name, text) for name, text in rows.items() if text]
