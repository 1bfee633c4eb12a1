"""How a benchmark and a run were set up, in words: never by the names of fields."""

from __future__ import annotations

from benchwright.core.benchmark import Placement
from benchwright.core.quantities import format_bytes, format_duration
from benchwright.core.stop_rule import NEVER, StopRule, Warmup
from benchwright.options.table import OPTIONS, Option, Options
from benchwright.report.text.numbers import counted


def _time(seconds: float) -> str:
    """As it was asked for: `30 s`, not `30.0 s`."""
    return f"{seconds:g} s" if seconds < 100 else format_duration(seconds)


def stop_words(rule: StopRule | None) -> str:
    if rule is None or rule == NEVER:
        return "runs to its end"
    if rule.steps is not None:
        return f"after {counted(rule.steps, 'measured step')}"
    if rule.seconds is not None:
        return f"after {_time(rule.seconds)} of measuring"
    if rule.observations is not None:
        return f"after {counted(rule.observations, 'rate')}, each over {_time(rule.interval_s)}"
    most = [counted(rule.max_steps, "step")] if rule.max_steps is not None else []
    most += [_time(rule.max_seconds)] if rule.max_seconds is not None else []
    words = f"when the median is known within ± {(rule.precision or 0) * 100:g} %, after {rule.min_steps} steps or more"
    return words + (f", {' or '.join(most)} at most" if most else "")


def warmup_words(warmup: Warmup) -> str:
    if warmup.steps is not None:
        return counted(warmup.steps, "step")
    if warmup.seconds is not None:
        return _time(warmup.seconds)
    return f"detected, {_time(warmup.max_seconds)} at most"


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


def settings_rows(options: Options) -> list[tuple[str, str]]:
    """Options the user gave, and how often launches and samples were taken."""
    shown = [(row, getattr(options, row.name)) for row in OPTIONS.values() if row.shown]
    said = [row.shown.format(_value(row, value)).partition(": ")[::2] for row, value in shown if value]
    return [
        ("Launches of each", f"at most {options.repeat}" if options.up_to else str(options.repeat)),
        *said,
        ("Time to exit", _time(options.grace)),
        ("Seed", str(options.seed)),
        *([] if options.workers is None else [("Workers", str(options.workers))]),
    ]


def _value(row: Option, value: object) -> str:
    if isinstance(value, float):
        return _time(value)
    if isinstance(value, tuple):
        return ", ".join(value)
    return format_bytes(value) if row.metavar == "SIZE" and isinstance(value, int) else str(value)
