"""Intel's GPUs: energy, power, clock and temperature, from the kernel's files (drivers xe and i915)."""

from __future__ import annotations

from benchwright.agent.machine.other_gpus import hwmon, intel_cards, number
from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading

# Where the clock that a GPU runs at is written: xe, then i915.
_CLOCKS = ("device/tile0/gt0/freq0/act_freq", "gt_act_freq_mhz", "gt/gt0/rps_act_freq_mhz")
_MICRO, _MILLI = 1e-6, 1e-3


class IntelSampler(Sampler):
    """Samples the job's GPUs. Power is the rise of the energy counter since the sample before."""

    name = "intel"

    def __init__(self, cards: list[str]) -> None:
        self._gpus = [(device, card, hwmon(card) or "") for device, card in enumerate(cards)]
        self._before: dict[int, tuple[int, float]] = {}

    def sample(self, now_ns: int) -> list[SamplerReading]:
        return [SamplerReading(self._values(*gpu, now_ns), gpu[0]) for gpu in self._gpus]

    def _values(self, device: int, card: str, sensors: str, now_ns: int) -> dict[str, float]:
        values: dict[str, float] = {}
        used = number(f"{sensors}/energy1_input")
        if used is not None:
            joules = values["energy_j"] = used * _MICRO
            before_ns, before_j = self._before.get(device, (now_ns, joules))
            if now_ns > before_ns:
                values["power_w"] = max(0.0, joules - before_j) / ((now_ns - before_ns) / 1e9)
            self._before[device] = (now_ns, joules)
        temperature = number(f"{sensors}/temp2_input")  # of the package
        if temperature is not None:
            values["temperature_c"] = max(0.0, temperature * _MILLI)
        clock = next((c for path in _CLOCKS if (c := number(f"{card}/{path}")) is not None), None)
        if clock is not None:
            values["sm_clock_mhz"] = clock
        return values


def open_sampler(subject: SampledJob) -> Sampler | None:
    """None without such a GPU, or when the job may not see any."""
    if subject.devices is not None and not subject.devices:
        return None
    cards = intel_cards(subject.devices)
    return IntelSampler(cards) if cards else None
