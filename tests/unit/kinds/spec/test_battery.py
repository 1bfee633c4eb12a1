"""Power from the battery of an Android device, as `dumpsys battery` tells it."""

from __future__ import annotations

import pytest

from benchwright.kinds.spec.observers.records import PrintedLine
from benchwright.kinds.spec.results.battery import MARK, BatteryUse, battery_use


def state(uptime: float, charge: int | str, millivolts: int = 4000, usb: str = "false") -> list[str]:
    return [
        f"{MARK} {uptime} 123.4",
        "Current Battery Service state:",
        "  AC powered: false",
        f"  USB powered: {usb}",
        "  level: 85",
        f"  voltage: {millivolts}",
        f"  Charge counter: {charge}",
    ]


def use(*parts: list[str], voltage: float | None = None) -> BatteryUse | None:
    texts = [text for part in parts for text in part]
    return battery_use([PrintedLine(n, text) for n, text in enumerate(texts, start=1)], voltage)


def test_charge_times_voltage_is_energy() -> None:
    found = use(
        state(100.0, 2_900_000, 4000),
        ["voltage: nonsense of the program", "Charge counter: 5"],
        state(160.0, 2_890_000, 3900),
    )
    assert found is not None
    # 10 mAh at 3.95 V in a minute.
    assert found.joules == pytest.approx(0.010 * 3600 * 3.95)
    assert found.seconds == pytest.approx(60.0)
    given = use(state(100.0, 2_900_000), state(160.0, 2_890_000), voltage=3.7)
    assert given is not None
    assert given.joules == pytest.approx(0.010 * 3600 * 3.7)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([state(1, 5, usb="true"), state(2, 4)], "being charged (usb)"),
        ([state(1, 5), state(2, 4, usb="true")], "being charged (usb)"),
        ([state(1, 5), state(20, 5)], "did not move within 19 s"),
        ([state(1, 5), state(20, 6)], "did not move"),
        ([state(1, "unknown"), state(2, 4)], "counts no charge"),
        ([state(1, 5)], "does not report"),
        ([[f"{MARK} 1 2"], [f"{MARK} 3 4"]], "does not report"),
    ],
)
def test_what_the_battery_cannot_tell_is_no_number(parts: list[list[str]], why: str) -> None:
    found = use(*parts)
    assert found is not None
    assert why in (found.trouble or "")
    assert found.joules == 0.0


def test_a_test_that_asked_no_battery_has_none() -> None:
    assert use(["Charge counter: 5"]) is None
