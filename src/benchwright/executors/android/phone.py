"""Facts that an Android device reports: model, system, battery, temperature, free space."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from benchwright.core.machine import platform_name
from benchwright.executors.transfer.shell import ANSWER, Reply, Shell, ask

_LIMIT_S = 30.0
ANDROID_DIR = "/data/local/tmp/"
_HOT_C = 60.0  # of a processor, where the device does not say whether it throttles
_LIKELY_C = (1.0, 150.0)  # sensors that are switched off say 0, or nonsense
_PROCESSOR = re.compile(r"cpu|soc|ap_therm|tsens|big|little|mtktscpu|exynos|gold|silver", re.IGNORECASE)
_LEVELS = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
_PROPERTIES = (
    "ro.product.model",
    "ro.product.cpu.abi",
    "ro.build.version.release",
    "ro.build.version.sdk",
    "dalvik.vm.isa.arm64.variant",
    "dalvik.vm.isa.arm.variant",
    "dalvik.vm.isa.x86_64.variant",
    "dalvik.vm.isa.x86.variant",
)
_ISA = {"arm64-v8a": "arm64", "armeabi-v7a": "arm", "armeabi": "arm", "x86_64": "x86_64", "x86": "x86"}
_HEAT = """\
dumpsys thermalservice 2>/dev/null | sed -n 's/^ *Thermal Status: */status /p'
for zone in /sys/class/thermal/thermal_zone*; do
  [ -r "$zone/temp" ] && echo "zone $(cat "$zone/temp" 2>/dev/null) $(cat "$zone/type" 2>/dev/null)"
done
"""
# $1: the folder for our files.
_ASK = f"""\
echo '{ANSWER}'
for name in {" ".join(_PROPERTIES)}; do
  echo "$name $(getprop "$name")"
done
echo "free $(df -Pk "$1" 2>/dev/null | tail -n 1 | sed 's/.* \\([0-9][0-9]*\\)  *[0-9]*% .*/\\1/')"
dumpsys battery 2>/dev/null | sed 's/^ */battery /'
echo "current $(cat /sys/class/power_supply/battery/current_now 2>/dev/null)"
{_HEAT}:"""
# The log is emptied before a program runs, so that what is there afterwards is of its time.
_BEFORE = f"""\
echo '{ANSWER}'
logcat -b all -c >/dev/null 2>&1 || logcat -c >/dev/null 2>&1
echo "running" /proc/[0-9]*
{_HEAT}:"""
_LOG = f"""\
echo '{ANSWER}'
logcat -d -v brief 2>/dev/null
:"""


class Battery(msgspec.Struct, frozen=True, kw_only=True):
    """None: the device does not say. `current_a` is what flows now, as the device counts it: the sign differs by maker."""

    level_percent: float | None = None
    voltage_v: float | None = None
    current_a: float | None = None
    temperature_c: float | None = None
    is_charging: bool | None = None


class Heat(msgspec.Struct, frozen=True, kw_only=True):
    """`throttling`: none, light, moderate… as Android 10 and newer say; None: unknown. `processor_c`: the hottest sensor."""

    throttling: str | None = None
    processor_c: float | None = None

    @property
    def why_not_cool(self) -> str | None:
        """Why programs would be slowed down now; None: nothing says so."""
        hot = self.processor_c is not None and self.processor_c > _HOT_C
        if self.throttling is not None:
            return None if self.throttling == _LEVELS[0] else f"it throttles ({self.throttling})"
        return f"its processor is at {self.processor_c:.0f} °C" if hot else None


class Before(msgspec.Struct, frozen=True):
    """A device right before a program runs on it. `running`: processes that are there already."""

    heat: Heat
    running: frozenset[int]


class Phone(msgspec.Struct, frozen=True, kw_only=True):
    """A device as it describes itself. `variant`: the kind of core that its system was built for, such as cortex-a76."""

    model: str
    abi: str
    variant: str
    release: str
    sdk: str
    battery: Battery = Battery()
    heat: Heat = Heat()
    free_bytes: int | None = None

    @property
    def platform(self) -> str:
        """Its name: model, variant, and release of Android."""
        return platform_name(f"{self.model}-{self.variant}-{self.release}-{self.sdk}")


def read_phone(shell: Shell, folder: str = ANDROID_DIR) -> Phone:
    """CannotMeasure if it cannot be asked."""
    reply = ask(shell, _ASK, folder, limit_s=_LIMIT_S, what="it was asked what it is")
    facts = _facts(reply)
    abi = facts.get("ro.product.cpu.abi", "")
    free = _number(facts, "free")
    return Phone(
        model=facts.get("ro.product.model", ""),
        abi=abi,
        variant=facts.get(f"dalvik.vm.isa.{_ISA.get(abi, 'arm')}.variant") or abi,
        release=facts.get("ro.build.version.release", ""),
        sdk=facts.get("ro.build.version.sdk", ""),
        battery=_battery(facts),
        heat=_heat(reply),
        free_bytes=None if free is None else int(free) * 1024,
    )


def empty_log(shell: Shell) -> Before:
    """Empties the device's log; returns how warm it is and what runs there, which are asked for in the same breath."""
    reply = ask(shell, _BEFORE, limit_s=_LIMIT_S, what="its log was emptied")
    listed = _facts(reply).get("running", "").split()
    pids = (path.removeprefix("/proc/") for path in listed)
    return Before(_heat(reply), frozenset(int(pid) for pid in pids if pid.isdigit()))


def read_log(shell: Shell) -> bytes:
    """The device's log: lines `I/TAG( 123): text`."""
    return ask(shell, _LOG, limit_s=_LIMIT_S, what="its log was read").text


def _facts(reply: Reply) -> dict[str, str]:
    facts: dict[str, str] = {}
    for line in reply.lines:
        key, _, value = line.strip().partition(" ")
        if key == "battery":
            name, _, value = value.partition(":")
            key = f"battery.{name}"
        facts.setdefault(key, value.strip())
    return facts


def _heat(reply: Reply) -> Heat:
    status: str | None = None
    hottest: float | None = None
    for line in reply.lines:
        words = line.split()
        if words[:1] == ["status"] and words[-1].isdigit():
            status = _LEVELS[min(int(words[-1]), len(_LEVELS) - 1)]
        elif words[:1] == ["zone"] and len(words) == 3 and _PROCESSOR.search(words[2]):
            found = re.fullmatch(r"-?\d{1,9}", words[1])
            degrees = int(words[1]) / (1000 if abs(int(words[1])) > 1000 else 1) if found else 0.0
            if _LIKELY_C[0] <= degrees <= _LIKELY_C[1]:
                hottest = degrees if hottest is None else max(hottest, degrees)
    return Heat(throttling=status, processor_c=hottest)


def _battery(facts: Mapping[str, str]) -> Battery:
    level, scale = _number(facts, "battery.level"), _number(facts, "battery.scale") or 100.0
    millivolts, tenths = _number(facts, "battery.voltage"), _number(facts, "battery.temperature")
    current = _number(facts, "current")
    powered = [value == "true" for key, value in facts.items() if key.endswith(" powered")]
    return Battery(
        level_percent=None if level is None else 100 * level / scale,
        voltage_v=None if millivolts is None else millivolts / 1000,
        current_a=None if current is None else current / 1e6,
        temperature_c=None if tenths is None else tenths / 10,
        is_charging=any(powered) if powered else None,
    )


def _number(facts: Mapping[str, str], key: str) -> float | None:
    text = facts.get(key, "")
    return float(text) if re.fullmatch(r"-?\d{1,15}", text) else None
