"""What the state of the GPUs means for measuring on them, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from benchwright.core.node.checkup import Figure, Finding, State
from benchwright.core.node.health import GpuHealth
from benchwright.core.numbers.quantities import format_bytes

_NOT_TOLD = "not reported by the system"


def judge_gpus(gpus: tuple[GpuHealth, ...], trouble: str | None) -> list[Finding]:
    """Findings called gpu.<index>.<what>; one called gpu.driver if no GPU can be read although there is a driver."""
    if trouble is not None:
        advice = "see whether nvidia-smi works; in a container, whether it was started with its GPUs"
        return [Finding(name="gpu.driver", state=State.WARNING, text=trouble, advice=advice)]
    return [finding for gpu in gpus for finding in _judge_gpu(gpu)]


def _judge_gpu(gpu: GpuHealth) -> Iterator[Finding]:
    yield _judge_users(gpu)
    yield _judge_clock(gpu)
    yield _judge_heat(gpu)
    yield _judge_power(gpu)
    yield _judge_errors(gpu)
    yield _judge_persistence(gpu)


def _judge_users(gpu: GpuHealth) -> Finding:
    figures: dict[str, Figure] = {
        "processes": None if gpu.processes is None else len(gpu.processes),
        "load_percent": gpu.load_percent,
        "memory_used_bytes": gpu.memory_used_bytes,
        "memory_total_bytes": gpu.memory_total_bytes,
    }
    name = f"gpu.{gpu.index}.users"
    busy = gpu.load_percent or 0.0
    if gpu.processes is None and gpu.load_percent is None:
        return Finding(name=name, state=State.UNKNOWN, text=_NOT_TOLD, figures=figures)
    memory = "" if gpu.memory_used_bytes is None else f", {format_bytes(gpu.memory_used_bytes)} of its memory in use"
    if not gpu.processes and busy < 5:
        return Finding(name=name, state=State.OK, text="no one else uses it", figures=figures)
    count = len(gpu.processes or ())
    pids = f" (pid {', '.join(map(str, (gpu.processes or ())[:4]))})" if count else ""
    who = f"{count} program{'' if count == 1 else 's'}{pids}" if count else "someone"
    return Finding(
        name=name,
        state=State.BAD if busy >= 20 else State.WARNING,
        text=f"{who} on it, {busy:.0f} % busy{memory}",
        advice="end them, wait, or choose another GPU with CUDA_VISIBLE_DEVICES",
        figures=figures,
    )


def _judge_clock(gpu: GpuHealth) -> Finding:
    name = f"gpu.{gpu.index}.clock"
    reasons = gpu.throttle_reasons
    figures: dict[str, Figure] = {"throttle_reasons": None if reasons is None else ", ".join(reasons)}
    if reasons is None:
        return Finding(name=name, state=State.UNKNOWN, text=_NOT_TOLD, figures=figures)
    if not reasons:
        return Finding(name=name, state=State.OK, text="its clock is not limited", figures=figures)
    slowed = any("slowdown" in reason or "brake" in reason for reason in reasons)
    return Finding(
        name=name,
        state=State.BAD if slowed else State.WARNING,
        text=f"its clock is limited by: {', '.join(reasons)}",
        advice="nvidia-smi -q -d PERFORMANCE tells more; let it cool, raise the power cap, reset clocks (-rgc, -rac)",
        figures=figures,
    )


def _judge_heat(gpu: GpuHealth) -> Finding:
    name = f"gpu.{gpu.index}.heat"
    figures: dict[str, Figure] = {"temperature_c": gpu.temperature_c, "throttles_at_c": gpu.throttles_at_c}
    if gpu.temperature_c is None:
        return Finding(name=name, state=State.UNKNOWN, text=_NOT_TOLD, figures=figures)
    limit = gpu.throttles_at_c or 90.0
    text = f"{gpu.temperature_c:.0f} °C, slows down at {limit:.0f} °C"
    if limit - gpu.temperature_c > 10:
        return Finding(name=name, state=State.OK, text=text, figures=figures)
    return Finding(name=name, state=State.WARNING, text=text, advice="let it cool before measuring", figures=figures)


def _judge_power(gpu: GpuHealth) -> Finding:
    name = f"gpu.{gpu.index}.power"
    figures: dict[str, Figure] = {"power_limit_w": gpu.power_limit_w, "power_default_w": gpu.power_default_w}
    if gpu.power_limit_w is None or gpu.power_default_w is None:
        return Finding(name=name, state=State.UNKNOWN, text=_NOT_TOLD, figures=figures)
    if gpu.power_limit_w > gpu.power_default_w - 1:
        return Finding(name=name, state=State.OK, text=f"may draw {gpu.power_limit_w:.0f} W", figures=figures)
    return Finding(
        name=name,
        state=State.WARNING,
        text=f"capped at {gpu.power_limit_w:.0f} W; its default is {gpu.power_default_w:.0f} W",
        advice=f"sudo nvidia-smi -i {gpu.index} -pl {gpu.power_default_w:.0f}, or compare only with runs under this cap",
        figures=figures,
    )


def _judge_errors(gpu: GpuHealth) -> Finding:
    name = f"gpu.{gpu.index}.errors"
    figures: dict[str, Figure] = {"uncorrected_errors": gpu.uncorrected_errors}
    if gpu.uncorrected_errors is None:
        return Finding(name=name, state=State.UNKNOWN, text=_NOT_TOLD, figures=figures)
    if not gpu.uncorrected_errors:
        return Finding(name=name, state=State.OK, text="no memory errors", figures=figures)
    return Finding(
        name=name,
        state=State.BAD,
        text=f"{gpu.uncorrected_errors} memory errors that could not be corrected",
        advice=f"reset it (sudo nvidia-smi -r -i {gpu.index}) or restart the machine; if they return, replace it",
        figures=figures,
    )


def _judge_persistence(gpu: GpuHealth) -> Finding:
    name = f"gpu.{gpu.index}.persistence"
    figures: dict[str, Figure] = {"persistent": gpu.persistent}
    if gpu.persistent is None:
        return Finding(name=name, state=State.UNKNOWN, text=_NOT_TOLD, figures=figures)
    if gpu.persistent:
        return Finding(name=name, state=State.OK, text="the driver stays loaded", figures=figures)
    return Finding(
        name=name,
        state=State.WARNING,
        text="the driver is unloaded when nobody uses the GPU: first steps are slow",
        advice=f"sudo nvidia-smi -i {gpu.index} -pm 1",
        figures=figures,
    )
