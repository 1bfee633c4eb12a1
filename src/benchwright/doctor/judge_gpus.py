"""What the state of the GPUs means for measuring on them, and what to do about it."""

from __future__ import annotations

from benchwright.core.node.health import GpuHealth
from benchwright.core.note import Note
from benchwright.core.numbers.quantities import format_bytes
from benchwright.doctor.judge_health import named, ok


def judge_gpus(gpus: tuple[GpuHealth, ...], trouble: str | None) -> list[Note]:
    """Notes called gpu.<index>.<what>; or one called gpu.driver if there is a driver but no GPU can be read."""
    if trouble is not None:
        remedy = "check that nvidia-smi works; a container must be started with its GPUs"
        return [Note(kind="gpu.driver", text=trouble, remedy=remedy)]
    return [
        note
        for gpu in gpus
        for note in named(
            {
                f"gpu.{gpu.index}.users": _users(gpu),
                f"gpu.{gpu.index}.clock": _clock(gpu.throttle_reasons),
                f"gpu.{gpu.index}.heat": _heat(gpu),
                f"gpu.{gpu.index}.power": _power(gpu),
                f"gpu.{gpu.index}.errors": _errors(gpu),
                f"gpu.{gpu.index}.persistence": _persistence(gpu),
            }
        )
    ]


def _users(gpu: GpuHealth) -> Note | None:
    if gpu.processes is None and gpu.load_percent is None:
        return None
    busy = gpu.load_percent or 0.0
    if not gpu.processes and busy < 5:
        return ok("not in use")
    count = len(gpu.processes or ())
    pids = ", ".join(map(str, (gpu.processes or ())[:4]))
    who = f"{count} program{'' if count == 1 else 's'} (pid {pids}) on it" if count else "in use"
    memory = "" if gpu.memory_used_bytes is None else f", {format_bytes(gpu.memory_used_bytes)} of its memory taken"
    return Note(
        severity="error" if busy >= 20 else "warning",
        text=f"{who}, {busy:.0f} % busy{memory}",
        remedy="stop them, wait, or choose another GPU with CUDA_VISIBLE_DEVICES",
    )


def _clock(reasons: tuple[str, ...] | None) -> Note | None:
    if reasons is None:
        return None
    if not reasons:
        return ok("clock not limited")
    slowed = any("slowdown" in reason or "brake" in reason for reason in reasons)
    return Note(
        severity="error" if slowed else "warning",
        text=f"limited by {', '.join(reasons)}",
        remedy="see nvidia-smi -q -d PERFORMANCE; let it cool, raise the power cap, or reset clocks (-rgc, -rac)",
    )


def _heat(gpu: GpuHealth) -> Note | None:
    if gpu.temperature_c is None:
        return None
    limit = gpu.throttles_at_c or 90.0
    text = f"{gpu.temperature_c:.0f} °C, slows down at {limit:.0f} °C"
    return ok(text) if limit - gpu.temperature_c > 10 else Note(text=text, remedy="let it cool before measuring")


def _power(gpu: GpuHealth) -> Note | None:
    limit, default = gpu.power_limit_w, gpu.power_default_w
    if limit is None or default is None:
        return None
    if limit > default - 1:
        return ok(f"may draw {limit:.0f} W")
    return Note(
        text=f"capped at {limit:.0f} W; its default is {default:.0f} W",
        remedy=f"sudo nvidia-smi -i {gpu.index} -pl {default:.0f}, or compare only with runs under this cap",
    )


def _errors(gpu: GpuHealth) -> Note | None:
    if gpu.uncorrected_errors is None:
        return None
    if not gpu.uncorrected_errors:
        return ok("no memory errors")
    return Note(
        severity="error",
        text=f"{gpu.uncorrected_errors} uncorrected memory errors",
        remedy=f"reset it (sudo nvidia-smi -r -i {gpu.index}) or restart the machine; if they return, replace it",
    )


def _persistence(gpu: GpuHealth) -> Note | None:
    if gpu.persistent is None:
        return None
    if gpu.persistent:
        return ok("the driver stays loaded")
    text = "the driver unloads when nobody uses the GPU: first steps are slow"
    return Note(text=text, remedy=f"sudo nvidia-smi -i {gpu.index} -pm 1")
