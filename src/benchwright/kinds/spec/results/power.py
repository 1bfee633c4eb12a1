"""Power tests: energy counters of the processor and of GPUs while the program ran, or the battery of an Android device."""

from __future__ import annotations

from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.kinds.spec.results.battery import BatteryUse
from benchwright.kinds.spec.spec_test import SpecPower
from benchwright.record.samples import COUNTERS
from benchwright.record.stream_file import Event

POWER, ENERGY = "power", "energy"
NO_COUNTER = (
    "nothing here counts energy: no readable RAPL counter of the processor (often kept for root), no NVIDIA GPU that reports "
    "it, no battery"
)

Reading = tuple[int, float]  # when, in nanoseconds, and joules so far


class EnergyUse:
    """Readings of every counter. `collection_time` of the test: only that long from the first reading counts."""

    def __init__(self, asked: SpecPower) -> None:
        self._most_ns = None if asked.collection_time_s is None else int(asked.collection_time_s * 1e9)
        self._readings: dict[tuple[str, str], list[Reading]] = {}

    def add(self, event: Event) -> None:
        for name, value in event.get("values", {}).items():
            if (event["sampler"], name) in COUNTERS and isinstance(value, int | float):
                key = (event["sampler"], str(event.get("device")))
                self._readings.setdefault(key, []).append((event["t"], float(value)))

    def measurements(self, battery: BatteryUse | None = None) -> list[Measurement]:
        """Energy of all counters together, or of the device's battery, and the power that is; none without two readings."""
        spans = [span for readings in self._readings.values() if (span := self._span(readings)) is not None]
        if battery is not None:  # counters of this machine are not those of the device
            spans = [(battery.joules, battery.seconds)] if battery.trouble is None else []
        if not spans:
            return []
        joules = sum(used for used, _ in spans)
        watts = sum(used / seconds for used, seconds in spans)
        return [_measurement(POWER, "W", watts), _measurement(ENERGY, "J", joules)]

    def notes(self) -> list[Note]:
        """Notes about the counters."""
        if not any(sampler == "rapl" for sampler, _ in self._readings):
            return []
        return [Note(text="power is that of the whole processor: what else ran on it is included", severity="info")]

    def _span(self, readings: list[Reading]) -> tuple[float, float] | None:
        """Joules and seconds from the first reading to the last one that counts."""
        begin, first = readings[0]
        inside = [r for r in readings if self._most_ns is None or r[0] - begin <= self._most_ns]
        end, last = inside[-1]
        return (last - first, (end - begin) / 1e9) if end > begin else None


def _measurement(metric: str, unit: str, value: float) -> Measurement:
    return Measurement(metric=metric, unit=unit, direction=Direction.LOWER, samples=(value,), source="sampler")
