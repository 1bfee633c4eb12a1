"""`--on adb`: plain programs on an Android device."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Self

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.executors.android.adb import AdbShell, AttachedDevice, attached_devices
from benchwright.executors.android.board import AdbBoard
from benchwright.executors.android.phone import read_phone
from benchwright.executors.base import Executor, Site
from benchwright.executors.boards.base import Board
from benchwright.executors.boards.executor import BoardExecutor

_PLAIN_PATH = re.compile(r"/[A-Za-z0-9_./:@+=-]*")  # it becomes part of scripts that run there


class AlikeDevices(BoardExecutor):
    """One of several devices of the same name: the first of `serials` that is free, and another if that is lost."""

    def __init__(
        self, serials: list[str], open_board: Callable[[str, Callable[[], bool]], Board], *, base: str | None
    ) -> None:
        self._left = serials
        self._open_board = open_board
        super().__init__(open_board(serials[0], lambda: False), self._another, base=base)

    def __enter__(self) -> Self:
        for serial in list(self._left):
            self._board = self._open_board(serial, lambda: False)
            try:
                self._board.__enter__()
            except CannotMeasure:
                if serial == self._left[-1]:
                    raise
                continue  # in use, or just lost
            self._left.remove(serial)
            return self
        raise AssertionError("there is at least one device")

    def _another(self) -> Board | None:
        ready = {device.serial for device in attached_devices() if device.is_ready}
        serial = next((serial for serial in self._left if serial in ready), None)
        if serial is None:
            return None
        self._left.remove(serial)
        return self._open_board(serial, lambda: self._stops == 0)


def open_executor(argument: str, site: Site) -> Executor:
    """`--on adb:SERIAL`: that device. `--on adb:NAME`: one of the devices of that name. `--on adb:SERIAL+NAME`: that device, or
    another of that name if it is lost. `--on adb`: the only one attached."""
    if site.folder_there is not None and not _PLAIN_PATH.fullmatch(site.folder_there):
        raise InvalidInput(
            f"'{site.folder_there}' is not an absolute path of plain letters, digits, dots and dashes",
            where="--android-dir",
            remedy="choose another, such as /data/local/tmp/",
        )

    def open_board(serial: str, waiting: Callable[[], bool]) -> Board:
        return AdbBoard(AdbShell(serial), site.folder_there, site.digests, waiting=waiting)

    devices = attached_devices()
    if argument and all(device.serial != argument for device in devices):
        first, _, name = argument.rpartition("+")
        ready = sorted((device.serial for device in devices if device.is_ready), key=lambda serial: serial != first)
        alike = [serial for serial in ready if _platform_of(serial) == name]
        if alike:
            return AlikeDevices(alike, open_board, base=site.folder)
    return BoardExecutor(open_board(_chosen(argument, devices).serial, lambda: False), base=site.folder)


def _platform_of(serial: str) -> str | None:
    try:
        return read_phone(AdbShell(serial)).platform
    except CannotMeasure:
        return None  # it was lost in the meantime


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
