"""voir's lines: a plain object is data, `{"$event": …, "$data": …}` an event.

A time or a task may be missing, numbers may be NaN, and everything may come twice.
"""

from __future__ import annotations

from typing import Any

from benchwright.core.reported import BEGIN, END, LEFT, TRAIN, UNNAMED, GpuSeen, Reported, Seen, is_number, keep_error

RANK = "$rank"  # added by our voirfile if lines of several ranks are mixed
_NOT_VALUES = frozenset({"task", "time", "units", "rate", "loss", "progress", "memory_peak"})
_MIB = float(1 << 20)
_BYTES = {"b": 1.0, "kib": 1024.0, "kb": 1000.0, "mib": _MIB, "mb": _MIB, "gib": _MIB * 1024, "gb": _MIB * 1024}


def add_line(reported: Reported, said: dict[str, object], t: int) -> None:
    """Adds one object, seen at `t`."""
    reported.lines += 1
    rank = said.get(RANK)
    if isinstance(rank, int):
        said = {key: value for key, value in said.items() if key != RANK}
        add_line(reported.rank(rank), said, t)
    if "$event" in said:
        add_event(reported, said["$event"], said.get("$data"), t)
    else:
        _add_data(reported, said, t)


def add_event(reported: Reported, kind: object, data: object, t: int) -> None:
    about = data if isinstance(data, dict) else {}
    if kind == "stop":
        reported.stop()
    elif kind == "phase" and isinstance(about.get("name"), str):
        reported.phases.setdefault(about["name"], t)
    elif kind == "error" and about.get("type") != "SystemExit":  # the normal end of a script
        reported.add_error(_error(about))
    elif kind in ("overseer_error", "format_error"):
        keep_error(reported.instrument_errors, _error(about))
    elif kind in (BEGIN, END, LEFT):
        when = about.get("t")
        counts = reported.counts() | _counts(about.get("rates"))
        reported.marks.setdefault(kind, (when if isinstance(when, int) else t, counts))


def _add_data(reported: Reported, data: dict[str, Any], seen_ns: int) -> None:
    t = reported.time_of(data.get("time"), seen_ns)
    task = data["task"] if isinstance(data.get("task"), str) else UNNAMED
    units = data["units"] if isinstance(data.get("units"), str) else None
    if is_number(rate := data.get("rate")):
        reported.add_rate(task, Seen(t, float(rate)), units)
    if is_number(loss := data.get("loss")):
        of = task if "task" in data else TRAIN  # the task of a loss without one
        reported.losses.setdefault(of, []).append(float(loss))
    if is_number(peak := data.get("memory_peak")):
        reported.memory_peaks.append(float(peak) * _BYTES.get((units or "MiB").lower(), _MIB))
    steps = data.get("progress")
    if isinstance(steps, list) and len(steps) == 2 and all(map(is_number, steps)):
        reported.progress[task] = (float(steps[0]), float(steps[1]))
    if isinstance(data.get("gpudata"), dict):
        _add_gpus(reported, data["gpudata"], t, data.get("time", seen_ns))
    for name, value in data.items():
        if name not in _NOT_VALUES and not name.startswith("$") and is_number(value):
            reported.values.setdefault((task, name), []).append(float(value))


def _add_gpus(reported: Reported, devices: dict[str, object], t: int, key: object) -> None:
    if (key, devices) == reported.last_gpus:
        return  # a repetition
    reported.last_gpus = (key, devices)
    for device, about in devices.items():
        if isinstance(about, dict):
            values, total = gpu_values(about)
            if total:
                reported.gpu_memory_bytes[str(device)] = total
            if values:
                reported.gpus.append(GpuSeen(t, str(device), values))


def gpu_values(about: dict[str, object]) -> tuple[dict[str, float], float | None]:
    """The values of one device of `gpudata`, named as by our sampler, and its memory in bytes.

    -1 and texts stand for values that the device does not report.
    """
    memory = about.get("memory")
    used, total = memory if isinstance(memory, list) and len(memory) == 2 else (None, None)
    raw = {
        "memory_bytes": (used, _MIB),
        "load_percent": (about.get("load"), 100.0),
        "temperature_c": (about.get("temperature"), 1.0),
        "power_w": (about.get("power"), 1.0),
    }
    values = {name: float(value) * scale for name, (value, scale) in raw.items() if is_number(value) and value >= 0}
    return values, float(total) * _MIB if is_number(total) and total > 0 else None


def _counts(said: object) -> dict[str, int]:
    return {k: v for k, v in said.items() if isinstance(v, int)} if isinstance(said, dict) else {}


def _error(about: dict[str, object]) -> str:
    return ": ".join(str(about[key]) for key in ("type", "message") if about.get(key))
