"""The program `adb`: which devices are attached, commands on one of them, and what failures mean."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence

import msgspec

from benchwright.core.errors import CannotMeasure

_LIMIT_S = 30.0
_LOST = 255
_OWN_CODES = (0, 1)  # adb ends with 0 if the device is unplugged, and with 1 if it cannot be used at all
_SHIFT = 50  # so exit codes of the device come with this added, beyond those
# What adb prints → what it means and what to do.
_MEANINGS = (
    (r"device '.*' not found|no devices/emulators", "it is not attached; plug it in and check: adb devices"),
    (r"unauthorized", "it does not trust this computer yet; unlock it and accept the key on its screen"),
    (r"no permissions", "this user may not use it; add a udev rule for it (Debian: android-sdk-platform-tools-common)"),
    (r"offline", "it does not respond; unlock it, or plug it in again"),
    (r"doesn't support PTY|not support shell", "its Android is too old to report exit codes; Android 7 or newer is needed"),
    (r"protocol fault|cannot connect to daemon", "the adb server does not respond; run: adb kill-server"),
)  # fmt: skip
NO_ADB = "there is no adb on this machine; install Android's platform tools (Debian: apt install adb)"


class AttachedDevice(msgspec.Struct, frozen=True):
    """`state`: device (ready), offline, unauthorized, recovery…"""

    serial: str
    state: str

    @property
    def is_ready(self) -> bool:
        return self.state == "device"

    @property
    def remedy(self) -> str | None:
        """The remedy that makes it usable."""
        if self.is_ready:
            return None
        return next((remedy for pattern, remedy in _MEANINGS if re.search(pattern, self.state)), "restart it")


def attached_devices() -> list[AttachedDevice]:
    """The devices that `adb devices` lists, in its order; CannotMeasure if there is no adb, or it does not work."""
    if shutil.which("adb") is None:
        raise CannotMeasure(NO_ADB)
    try:
        done = subprocess.run(
            ["adb", "devices"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotMeasure(f"adb devices: {error}; run: adb kill-server") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise CannotMeasure(f"adb devices: {said[-1]}; run: adb kill-server")
    _, _, listed = done.stdout.decode(errors="replace").partition("List of devices attached")
    rows = [line.split("\t") for line in listed.splitlines() if "\t" in line]
    return [AttachedDevice(row[0].strip(), row[1].strip()) for row in rows]


class AdbShell:
    """Commands on one device; a Shell. Constructing it connects to nothing."""

    def __init__(self, serial: str) -> None:
        self.serial = serial

    def __str__(self) -> str:
        return f"device '{self.serial}'"

    def adb(self, *words: str) -> list[str]:
        """The local command that gives adb these words, for this device."""
        return ["adb", "-s", self.serial, *words]

    def words(self, command: Sequence[str]) -> list[str]:
        # -T: no terminal, so that input and output pass unchanged. The shell there gets one string.
        return self.adb("shell", "-T", f"{shlex.join(command)}; exit $((($? + {_SHIFT}) % 256))")

    def ended(self, code: int) -> int:
        return code if code < 0 else _LOST if code in _OWN_CODES else (code - _SHIFT) % 256

    def explain(self, code: int, printed: str) -> str:
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        for pattern, meaning in _MEANINGS:
            if code == _LOST and re.search(pattern, printed):
                return f"{self}: {meaning}"
        if code == _LOST:
            return f"{self}: it was unplugged or restarted, or its adb stopped; check: adb devices"
        if code < 0:
            return f"{self}: adb was killed by signal {-code}"
        return f"{self}: {lines[-1] if lines else f'a command ended with code {code}'}"
