"""Places to measure programs: this machine, the nodes of a system file, attached Android devices."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import msgspec

from benchwright.agent.machine.fingerprint import read_machine
from benchwright.core.errors import CannotMeasure
from benchwright.core.system import Node, System
from benchwright.executors.allocation import FILE
from benchwright.executors.android.adb import AdbShell, AttachedDevice, attached_devices
from benchwright.executors.android.phone import Battery, read_phone
from benchwright.executors.slurm import end_allocations
from benchwright.executors.transfer.shell import ANSWER, ask
from benchwright.executors.via_connection import connection_to
from benchwright.kinds.suite.system_file import read_system
from benchwright.options.variables import value_of
from benchwright.runs.fan_out_folder import fan_outs
from benchwright.runs.run_folder import RunFolder

HOST, SSH, ANDROID = "host", "ssh", "android"
READY = "ready"
_AT_ONCE = 8
_LIMIT_S = 30.0
# Reads and writes nothing. Prints `key value` lines.
_LOOK = f"""\
echo '{ANSWER}'
echo "system $(uname -s) $(uname -r)"
echo "abi $(uname -m)"
echo "hash $(uname -n)"
echo "free $(df -Pk "$HOME" 2>/dev/null | tail -n 1 | sed 's/.* \\([0-9][0-9]*\\)  *[0-9]*% .*/\\1/')"
echo "model $(sed -n 's/^model name[^:]*: *//p; s/^Model[^:]*: *//p' /proc/cpuinfo 2>/dev/null | sed q)"
echo "heat $(cat /sys/class/thermal/thermal_zone0/temp 2>/dev/null)"
:"""


class LabDevice(msgspec.Struct, frozen=True, kw_only=True):
    """`name` is that of its platform, and `hash` tells it from others of the same. `on`: what `--on` calls it. None: unknown."""

    name: str | None
    hash: str
    kind: Literal["host", "ssh", "android"]
    on: str
    state: str = READY
    remedy: str | None = None  # what to do before it can be used
    model: str | None = None
    abi: str | None = None
    system: str | None = None
    free_bytes: int | None = None
    temperature_c: float | None = None
    throttling: str | None = None
    battery: Battery | None = None

    @property
    def is_ready(self) -> bool:
        return self.state == READY


class Lab(msgspec.Struct, frozen=True, kw_only=True):
    """`problem`: why Android devices could not be looked for."""

    devices: tuple[LabDevice, ...]
    problem: str | None = None


def known_system(file: str | None, environment: Mapping[str, str]) -> System:
    """The system file that is named, else that of the environment; without one, no nodes."""
    file = file or value_of("BENCHWRIGHT_SYSTEM", environment)
    if not file:
        return System()

    return read_system(file)[0]


def look_around(
    system: System, folder: str, *, kinds: Sequence[str] = (HOST, SSH, ANDROID), on_phones: str | None = None
) -> Lab:
    """Asks all of them at once. `folder`: of this machine, for its free space; `on_phones`: the same on Android."""
    asked: list[Callable[[], LabDevice]] = []
    problem: str | None = None
    if HOST in kinds:
        asked.append(lambda: _this_machine(folder))
    if SSH in kinds:
        asked += [_asking_node(node, system.sshkey) for node in system.nodes if not node.local]
    if ANDROID in kinds:
        try:
            asked += [_asking_phone(device, on_phones) for device in attached_devices()]
        except CannotMeasure as error:
            problem = str(error)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return Lab(devices=tuple(pool.map(lambda look: look(), asked)), problem=problem)


def end_lost_allocations(runs: Path) -> list[str]:
    """Releases nodes that killed runs still hold on a cluster; returns the runs, each with its jobs."""
    folders = [file.parent for place in (runs, fan_outs(runs)) for file in sorted(place.glob(f"*/{FILE}"))]
    ended = {f.name: end_allocations(str(f)) for f in folders if not RunFolder(f).is_busy()}
    return [f"{name} (job {', '.join(numbers)})" for name, numbers in ended.items() if numbers]


def _this_machine(folder: str) -> LabDevice:
    machine = read_machine()
    place = Path(folder)
    while not place.exists():  # the base folder is made by the first run
        place = place.parent
    return LabDevice(
        name=machine.platform,
        hash=machine.hostname,
        kind="host",
        on="local",
        model=machine.cpu,
        abi=machine.architecture,
        system=f"{machine.system} {machine.kernel}",
        free_bytes=shutil.disk_usage(place).free,
    )


def _asking_node(node: Node, key: str | None) -> Callable[[], LabDevice]:
    def look() -> LabDevice:
        user, port = f"{node.user}@" if node.user else "", "" if node.port is None else f":{node.port}"
        on = f"ssh:{node.name}" if node.via else f"ssh:{user}{node.ip}{port}"
        connection = connection_to(node, key, "python3")
        try:
            lines = ask(connection, _LOOK, limit_s=_LIMIT_S, what="it was asked what it is").lines
        except CannotMeasure as error:
            return LabDevice(name=node.name, hash=node.ip, kind="ssh", on=on, state="unreachable", remedy=str(error))
        facts = {key: value.strip() for key, _, value in (line.partition(" ") for line in lines)}
        heat = facts.get("heat", "")
        return LabDevice(
            name=node.name,
            hash=facts.get("hash") or node.ip,
            kind="ssh",
            on=on,
            model=facts.get("model") or None,
            abi=facts.get("abi") or None,
            system=facts.get("system") or None,
            free_bytes=int(facts["free"]) * 1024 if facts.get("free", "").isdigit() else None,
            temperature_c=int(heat) / 1000 if heat.isdigit() else None,
        )

    return look


def _asking_phone(device: AttachedDevice, folder: str | None) -> Callable[[], LabDevice]:
    def look() -> LabDevice:
        on, serial = f"adb:{device.serial}", device.serial
        if not device.is_ready:
            return LabDevice(
                name=None, hash=serial, kind="android", on=on, state=device.state, remedy=device.remedy
            )  # fmt: skip
        shell = AdbShell(serial)
        try:
            phone = read_phone(shell, folder) if folder else read_phone(shell)
        except CannotMeasure as error:
            return LabDevice(name=None, hash=serial, kind="android", on=on, state="unreachable", remedy=str(error))
        return LabDevice(
            name=phone.platform,
            hash=serial,
            kind="android",
            on=on,
            model=phone.model,
            abi=phone.abi,
            system=f"Android {phone.release} (SDK {phone.sdk})",
            free_bytes=phone.free_bytes,
            temperature_c=phone.heat.processor_c or phone.battery.temperature_c,
            throttling=phone.heat.throttling,
            battery=phone.battery,
        )

    return look
