"""The battery of an Android device, read before and after a power test, as lines in its output.

Android keeps the battery's charge in microampere hours. A device that is being charged uses the charger's energy, which nobody counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from benchwright.kinds.spec.observers.records import PrintedLine

MARK = "BenchwrightBattery"
# `|| true`: a device without the service is measured all the same, and found to have no battery.
READ = f'echo "{MARK} $(cat /proc/uptime)"; dumpsys battery || true'
_FIELD = re.compile(r"\s*([A-Za-z ]+):\s*(\S+)\s*")
_MOST_LINES = 60


class BatteryUse(NamedTuple):
    """Energy drawn from the battery, and for how long; `trouble`: why that is not known."""

    joules: float = 0.0
    seconds: float = 0.0
    trouble: str | None = None


class _State(NamedTuple):
    at_s: float
    fields: dict[str, str]

    def number(self, name: str) -> float | None:
        text = self.fields.get(name, "")
        return float(text) if re.fullmatch(r"-?\d{1,12}(\.\d{1,6})?", text) else None


def battery_use(lines: Sequence[PrintedLine], voltage: float | None) -> BatteryUse | None:
    """None if the battery was not asked. `voltage`: of the test, in place of the battery's own."""
    states = _states(lines)
    if not states:
        return None
    if len(states) < 2 or not all(state.fields for state in states):
        return BatteryUse(trouble="the device does not report its battery state")
    first, last = states[0], states[-1]
    charging = [name for name, value in (*first.fields.items(), *last.fields.items()) if _is_charger(name, value)]
    if charging:
        source = charging[0].removesuffix(" powered")
        return BatteryUse(
            trouble=f"the device was being charged ({source}), so its battery says nothing; use adb over Wi-Fi"
        )
    begin, end = first.number("charge counter"), last.number("charge counter")
    volts = voltage or _mean(first.number("voltage"), last.number("voltage"))
    if begin is None or end is None or not volts:
        return BatteryUse(trouble="its battery counts no charge, or no voltage is known")
    seconds = last.at_s - first.at_s
    if begin <= end or seconds <= 0:
        return BatteryUse(trouble=f"the battery's counter did not move within {seconds:.0f} s; run it for longer")
    return BatteryUse((begin - end) * 1e-6 * 3600 * volts, seconds)


def _states(lines: Sequence[PrintedLine]) -> list[_State]:
    found: list[_State] = []
    since = 0
    for line in lines:
        if line.text.startswith(f"{MARK} "):
            uptime = re.match(rf"{MARK} (\d+(?:\.\d+)?)\b", line.text)
            if uptime is not None:
                found.append(_State(float(uptime[1]), {}))
                since = line.number
        elif found and line.number - since <= _MOST_LINES and (field := _FIELD.fullmatch(line.text)) is not None:
            found[-1].fields.setdefault(field[1].strip().lower(), field[2])
    return found


def _is_charger(name: str, value: str) -> bool:
    return name.endswith(" powered") and value == "true"


def _mean(first: float | None, last: float | None) -> float | None:
    """In volts, from millivolts."""
    known = [value for value in (first, last) if value is not None]
    return sum(known) / len(known) / 1000 if known else None
