"""Several devices: which there are, which a run means, and runs on all of them at once."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from adb_device import AdbDevice, attached
from command_line import CommandLine, metric
from processes import wait_for
from ssh_server import start_ssh_server


@pytest.fixture(scope="module")
def phones(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AdbDevice, AdbDevice]]:
    """Two of one name."""
    folder = tmp_path_factory.mktemp("adb")
    with attached(folder) as first:
        second = AdbDevice(folder / "second")
        second.start()
        assert first.server is not None
        first.server.connect(second)
        yield first, second
        second.unplug()


@pytest.fixture
def lab(phones: tuple[AdbDevice, AdbDevice], bw: CommandLine) -> CommandLine:
    hidden = ("BENCHWRIGHT_SYSTEM", "MILABENCH_SYSTEM")
    bw.env = {name: value for name, value in bw.env.items() if name not in hidden}
    bw.env |= {name: os.environ[name] for name in ("HOME", "ANDROID_ADB_SERVER_PORT")}
    write_program(bw)
    return bw


def write_program(bw: CommandLine, then: str = "") -> None:
    """What it does `then` sees the files of this machine: the phones are folders of it."""
    program = bw.cwd / "program"
    program.write_text(f'#!/bin/sh\necho "speed: 12"\n{then}\n')
    program.chmod(0o755)


NAME, PAIR = "Test-Phone-1-cortex-a76-12-31", "Pair-cortex-a76-12-31"


def hosts(bw: CommandLine) -> list[str]:
    return sorted(json.loads(path.read_text())["hostname"] for path in (bw.base / "runs").glob("*/machine.json"))


def test_devices_lists_this_machine_and_every_phone(lab, phones):
    found = json.loads(lab("devices", "--json").stdout)["devices"]
    assert [device["kind"] for device in found] == ["host", "android", "android"]
    host, phone, _ = found
    assert (host["hash"], host["on"], host["state"]) == (os.uname().nodename, "local", "ready")
    assert host["name"].startswith(f"{os.uname().sysname}-{os.uname().release}-")
    assert (phone["name"], phone["on"]) == (NAME, f"adb:{phone['hash']}")
    assert (phone["model"], phone["abi"], phone["system"]) == ("Test Phone/1", "arm64-v8a", "Android 12 (SDK 31)")
    assert phone["battery"]["level_percent"] == 87
    assert phone["battery"]["voltage_v"] == 4.123
    assert (phone["temperature_c"], phone["throttling"]) == (25.1, "none")
    assert phone["free_bytes"] > 0
    shown = lab("devices").stdout
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "87 %" in shown
    assert NAME in shown
    assert f" {os.uname().nodename} " in shown


def test_devices_asks_the_nodes_of_a_system_file(lab, tmp_path):
    server = start_ssh_server(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {server.folder}/client "$@"\n')
    (programs / "ssh").chmod(0o755)
    nodes = [
        {"name": "pi", "ip": server.address, "port": server.port, "user": getpass.getuser(), "main": True},
        {"name": "gone", "ip": server.address, "port": 1, "user": "x"},
    ]
    (lab.cwd / "lab.yaml").write_text(json.dumps({"system": {"sshkey": str(server.folder / "key"), "nodes": nodes}}))
    try:
        path = {"PATH": f"{programs}:{lab.env['PATH']}"}
        found = json.loads(lab("devices", "--system", "lab.yaml", "--json", code=1, env=path).stdout)["devices"]
        known = path | {"BENCHWRIGHT_SYSTEM": str(lab.cwd / "lab.yaml")}
        lab("run", "--devices", "pi", "--", "./program", env=known)
        ran_on = json.loads((lab.last_run() / "plan.json").read_text())["options"]["on"]
        assert "is unreachable" in lab("run", "--devices", "gone", "--", "true", code=3, env=known).stderr
    finally:
        server.stop()
    pi, gone = (device for device in found if device["kind"] == "ssh")
    assert (pi["name"], pi["hash"], pi["state"]) == ("pi", os.uname().nodename, "ready")
    assert ran_on == pi["on"] == f"ssh:{getpass.getuser()}@{server.address}:{server.port}"
    assert (gone["name"], gone["state"]) == ("gone", "unreachable")
    assert "no ssh server listens there" in gone["remedy"]


def test_devices_says_what_to_do_about_those_that_cannot_be_used(lab, phones, tmp_path):
    server = phones[0].server
    locked = AdbDevice(tmp_path / "locked")
    locked.is_authorised = False
    locked.start()
    server.connect(locked)
    try:
        said = lab("devices", code=1).stdout
        assert "unauthorized" in said
        assert f"adb:{locked.serial}: it does not trust this computer yet" in said
        assert "accept the key" in lab("run", "--on", f"adb:{locked.serial}", "--", "true", code=3).stderr
        assert "accept the key" in lab("run", "--devices", locked.serial, "--", "true", code=3).stderr
    finally:
        server.adb("disconnect", locked.serial)
        locked.unplug()


def test_every_device_of_a_platform_runs_at_the_same_time(lab, phones):
    begun = lab.cwd / "begun"
    write_program(lab, f"echo x >> {begun}\nwhile [ $(wc -l < {begun}) -lt 2 ]; do sleep 0.1; done")
    words = ("--platform", "android/clang", "--metric", r"speed=speed: (\d+)", "--timeout", "300s")
    said = lab("run", "--json", *words, "--", "./program")  # one after the other, they would run out of time
    bodies = json.loads(said.stdout)["runs"]
    assert [metric(body, "speed")["values"] for body in bodies] == [[12.0], [12.0]]
    assert hosts(lab) == sorted(phone.serial for phone in phones)
    assert [body["labels"]["platform"] for body in bodies] == ["android/clang"] * 2
    assert begun.read_text().split() == ["x", "x"]


def test_devices_are_chosen_by_hash_and_left_out_by_hash(lab, phones):
    first, second = phones
    lab("run", "--platform", "android", "--devices", first.serial, "--", "./program")
    lab("run", "--platform", "android", "--excluded-devices", first.serial, "--", "./program")
    assert hosts(lab) == sorted([first.serial, second.serial])


def test_the_host_is_this_machine(lab):
    lab("run", "--platform", "linux", "--", "./program")
    assert hosts(lab) == [os.uname().nodename]


def test_what_no_device_is_called_is_refused(lab):
    assert "there is no device 'nope' here" in lab("run", "--devices", "nope", "--", "true", code=2).stderr
    assert "'windows' is no platform" in lab("run", "--platform", "windows", "--", "true", code=2).stderr
    assert "drop one of them" in lab("run", "--on", "local", "--platform", "host", "--", "true", code=2).stderr
    assert (
        "excludes every device"
        in lab("run", "--platform", "host", "--excluded-devices", os.uname().nodename, "--", "true", code=3).stderr
    )


def test_without_adb_it_is_said_how_to_get_it(lab, tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    for program in ("sh", "true"):
        (folder / program).symlink_to(shutil.which(program))
    env = {"PATH": str(folder)}
    assert "there is no adb on this machine" in lab("devices", env=env).stdout
    assert "install Android's platform tools" in lab("run", "--on", "adb", "--", "true", code=3, env=env).stderr
    assert (
        "install Android's platform tools" in lab("run", "--platform", "android", "--", "true", code=3, env=env).stderr
    )


@pytest.mark.parametrize("where", [("--on", f"adb:{PAIR}"), pytest.param(("--devices", PAIR), marks=pytest.mark.long)])
def test_a_device_that_is_lost_is_replaced_by_another_of_its_name(lab, phones, tmp_path, where):
    server = phones[0].server
    alike = [AdbDevice(tmp_path / name, **{"ro.product.model": "Pair"}) for name in "ab"]
    for device in alike:
        device.start()
        server.connect(device)
    lost: list[AdbDevice] = []
    write_program(lab, f"while ! [ -e {lab.cwd}/unplugged ]; do sleep 0.1; done")
    watching = threading.Thread(target=unplug_the_first_in_use, args=(alike, lost, lab.cwd / "unplugged"))
    watching.start()
    try:
        body = lab.json("run", *where, "--metric", r"speed=speed: (\d+)", "--", "./program")
    finally:
        watching.join()
        for device in alike:
            server.adb("disconnect", device.serial)
            device.unplug()
    bodies = body.get("runs", [body])
    assert [metric(each, "speed")["values"] for each in bodies] == [[12.0]] * (1 if where[0] == "--on" else 2)
    other = next(device for device in alike if device is not lost[0])
    said = f"device '{lost[0].serial}' was lost, so this ran on device '{other.serial}'"
    assert json.dumps(bodies).count(said) == 1


def unplug_the_first_in_use(devices: list[AdbDevice], lost: list[AdbDevice], unplugged: Path) -> None:
    """`unplugged` is made then, for programs that wait for it."""

    def used() -> list[AdbDevice]:
        return [
            device
            for device in devices
            if any(name.startswith("job.") for _, _, files in os.walk(device.temporary) for name in files)
        ]

    if wait_for(lambda: bool(used()), 300):
        lost.append(used()[0])
        lost[0].unplug()
    unplugged.touch()


@pytest.mark.long
def test_a_device_that_is_lost_does_not_stop_the_others(lab, phones, tmp_path):
    server = phones[0].server
    doomed = AdbDevice(tmp_path / "doomed", **{"ro.product.model": "Doomed"})
    doomed.start()
    server.connect(doomed)
    write_program(lab, f"while ! [ -e {lab.cwd}/unplugged ]; do sleep 0.1; done")
    watching = threading.Thread(target=unplug_the_first_in_use, args=([doomed], [], lab.cwd / "unplugged"))
    watching.start()
    names = f"{doomed.serial},{phones[0].serial}"
    said = lab("run", "--json", "--devices", names, "--metric", r"speed=speed: (\d+)", "--", "./program", code=1)
    watching.join()
    server.adb("disconnect", doomed.serial)
    results = {}
    for body in json.loads(said.stdout)["runs"]:
        machine = json.loads((Path(body["folder"]) / "machine.json").read_text())
        results[machine["hostname"]] = body["results"][0]
    assert results[phones[0].serial]["status"] == "ok"
    assert (results[doomed.serial]["status"], results[doomed.serial]["reason"]) == ("failed", "agent_lost")


def test_ctrl_c_ends_the_runs_of_all_devices_and_each_can_be_resumed(lab, phones):
    write_program(lab, "sleep 600")
    running = subprocess.Popen(
        lab.argv("run", "--platform", "android", "--", "./program"), env=lab.env, cwd=lab.cwd,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with running, killed_at_the_end(running):
        folders = [phone.temporary / "benchwright/runs" for phone in phones]
        assert wait_for(lambda: all(any(folder.glob("*/job.*")) for folder in folders), 300), "no program was started"
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=300)[1]
    assert running.returncode == 130
    assert said.count("resume with: benchwright run --resume=") == 2
    assert [os.listdir(folder) for folder in folders] == [[], []]


@contextmanager
def killed_at_the_end(running: subprocess.Popen[str]) -> Iterator[None]:
    """So that a failed test leaves nothing to the next ones."""
    try:
        yield
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
