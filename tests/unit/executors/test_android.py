"""What Android devices and adb say, in all its forms."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from local_shell import LocalShell

from benchwright.core.machine import platform_name
from benchwright.executors.android.adb import AdbShell, AttachedDevice, attached_devices
from benchwright.executors.android.board import DeviceInUse, DeviceLock
from benchwright.executors.android.phone import Battery, empty_log, read_phone
from benchwright.executors.transfer.shell import ANSWER

PROPERTIES = """\
ro.product.model Pixel 6
ro.product.cpu.abi arm64-v8a
ro.build.version.release 13
ro.build.version.sdk 33
dalvik.vm.isa.arm64.variant cortex-a76
dalvik.vm.isa.arm.variant cortex-a55
"""


class Answering(LocalShell):
    """A device that prints this, whatever it is asked."""

    def __init__(self, text: str) -> None:
        self._text = text

    def words(self, command: Sequence[str]) -> list[str]:
        return ["printf", "%s\n%s", ANSWER, self._text]


def test_a_phone_is_named_as_fai_pep_names_it():
    assert read_phone(Answering(PROPERTIES)).platform == "Pixel-6-cortex-a76-13-33"


def test_a_phone_that_says_next_to_nothing_is_a_phone():
    phone = read_phone(Answering("ro.product.model Old\nro.product.cpu.abi armeabi-v7a\nfree \nbattery \ncurrent \n"))
    assert phone.platform == "Old-armeabi-v7a--"
    assert (phone.free_bytes, phone.battery, phone.heat.processor_c) == (None, Battery(), None)


@pytest.mark.parametrize(
    ("text", "name"),
    [("SM-G960F/DS", "SM-G960F-DS"), ("Mi 9 (5G)", "Mi-9-5G"), ("x@y é", "xy-"), ("../..", "..-..")],
)
def test_names_keep_only_what_a_folder_may_hold(text, name):
    assert platform_name(text) == name


def test_a_battery_says_its_level_in_percent_of_its_scale():
    said = "battery AC powered: false\nbattery USB powered: true\nbattery level: 45\nbattery scale: 90\nbattery voltage: 3900\ncurrent -250000\n"
    battery = read_phone(Answering(said)).battery
    assert battery == Battery(level_percent=50.0, voltage_v=3.9, current_a=-0.25, is_charging=True)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("status 0\nzone 95000 cpu-0-0\n", None),  # it says that it does not throttle
        ("status 1\n", "it throttles (light)"),
        ("status 99\n", "it throttles (shutdown)"),
        ("zone 45000 cpu-0-0\nzone 71000 cpu-1-0\n", "its processor is at 71 °C"),
        ("zone 72 soc_thermal\n", "its processor is at 72 °C"),  # degrees instead of thousandths
        ("zone 95000 battery\nzone 99999999 cpu-0-0\nzone -40000 cpu-1\nzone x cpu-2\nzone\n", None),
    ],
)
def test_a_device_is_hot_if_it_throttles_or_else_if_its_processor_is(said, why):
    assert empty_log(Answering(said)).heat.why_not_cool == why


def test_processes_that_run_already_are_known_by_number():
    assert empty_log(Answering("running /proc/1 /proc/77\n")).running == {1, 77}
    assert empty_log(Answering("running /proc/[0-9]*\n")).running == frozenset()


@pytest.mark.parametrize(("local", "there"), [(0, 255), (1, 255), (50, 0), (57, 7), (177, 127), (189, 139), (-9, -9)])
def test_what_adb_itself_ends_with_is_never_the_exit_code_of_a_program(local, there):
    assert AdbShell("x").ended(local) == there


@pytest.mark.parametrize(
    ("printed", "says"),
    [
        ("error: device 'x' not found", "is not attached"),
        ("error: device unauthorized.\nThis adb server's…", "accept the key"),
        ("error: device offline", "plug it in again"),
        ("error: target doesn't support PTY args -Tt", "Android 7 or newer"),
        ("", "it was unplugged or restarted"),
    ],
)
def test_a_device_that_cannot_be_used_comes_with_what_to_do(printed, says):
    assert says in AdbShell("x").explain(255, printed)


def test_what_a_program_prints_does_not_become_an_excuse_of_adb():
    assert AdbShell("x").explain(3, "device offline\nno such model") == "device 'x': no such model"


def test_devices_are_listed_in_every_state(tmp_path, monkeypatch):
    adb = tmp_path / "adb"
    listing = "* daemon not running; starting now\\nList of devices attached\\nA1\\tdevice\\nB2\\tunauthorized\\nC3\\tno permissions (udev)\\n\\n"
    adb.write_text(f"#!/bin/sh\nprintf '{listing}'\n")
    adb.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = attached_devices()
    assert [(device.serial, device.is_ready) for device in found] == [("A1", True), ("B2", False), ("C3", False)]
    assert found[0].remedy is None
    assert "accept the key" in (found[1].remedy or "")
    assert "udev" in (found[2].remedy or "")
    assert AttachedDevice("D4", "recovery").remedy == "restart it"


def test_a_device_has_one_user(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = DeviceLock("x")
    DeviceLock("y").release()
    with pytest.raises(DeviceInUse, match="another run is using it"):
        DeviceLock("x")
    first.release()
    first.release()
    DeviceLock("x").release()
