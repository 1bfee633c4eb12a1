"""`--on adb`: plain programs on an Android device."""

from __future__ import annotations

from benchwright.core.errors import CannotMeasure
from benchwright.executors.android.adb import AdbShell, AttachedDevice, attached_devices
from benchwright.executors.android.board import AdbBoard
from benchwright.executors.base import Executor, Site
from benchwright.executors.boards.executor import BoardExecutor


def open_executor(argument: str, site: Site) -> Executor:
    """`--on adb:SERIAL`: that device. `--on adb`: the only one attached."""
    device = _chosen(argument, attached_devices())
    digests = None if site.folder is None else f"{site.folder}/artifacts/digests"
    return BoardExecutor(AdbBoard(AdbShell(device.serial), site.remote_dir, digests))


def _chosen(serial: str, devices: list[AttachedDevice]) -> AttachedDevice:
    if not devices:
        raise CannotMeasure(
            "no Android device is attached; plug one in, allow USB debugging on it, and check: adb devices"
        )
    listed = ", ".join(device.serial for device in devices)
    if not serial and len(devices) > 1:
        raise CannotMeasure(f"several devices are attached ({listed}); name one: --on adb:{devices[0].serial}")
    device = devices[0] if not serial else next((d for d in devices if d.serial == serial), None)
    if device is None:
        raise CannotMeasure(f"device '{serial}' is not attached; attached: {listed}")
    if device.remedy is not None:
        raise CannotMeasure(f"device '{device.serial}' is {device.state}: {device.remedy}")
    return device
