"""Programs on an Android device: the real adb, and a device of ours at its other end."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from adb_device import AdbDevice, attached
from command_line import CommandLine, metric
from specifications import file_entry, written

from benchwright.core.errors import CannotMeasure
from benchwright.executors.android.adb import AdbShell
from benchwright.executors.android.board import AdbBoard
from benchwright.executors.boards.base import BoardCommand, BoardOutput
from benchwright.executors.transfer.shell import ConnectionLost


@pytest.fixture(scope="module")
def shared_phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbDevice]:
    with attached(tmp_path_factory.mktemp("adb")) as device:
        yield device


@pytest.fixture
def phone(shared_phone: AdbDevice, bw: CommandLine) -> AdbDevice:
    """One that `bw` finds. It stays as it is."""
    bw.env |= {name: os.environ[name] for name in ("HOME", "ANDROID_ADB_SERVER_PORT")}
    return shared_phone


@pytest.fixture
def own_phone(phone: AdbDevice, tmp_path: Path) -> Iterator[AdbDevice]:
    """Another one, for this test alone."""
    assert phone.server is not None
    device = AdbDevice(tmp_path / "own-phone")
    device.start()
    device.server = phone.server
    device.server.connect(device)
    yield device
    device.server.adb("disconnect", device.serial)
    device.unplug()


def program(bw: CommandLine, text: str, name: str = "program") -> str:
    path = bw.cwd / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return f"./{name}"


def leftovers(phone: AdbDevice) -> list[str]:
    return os.listdir(phone.temporary / "benchwright/runs")


def test_what_a_program_prints_and_logs_is_measured(bw, phone):
    noise = f'echo "I/Other( {os.getpid()}): logged: 99" >>{phone.folder}/logcat'
    made = program(bw, f'echo "speed: 12"; log -t X "logged: 5"; log -t X "speed: 12"; {noise}')
    body = bw.json(
        "run", "--on", "adb", "--metric", r"speed=speed: (\d+)", "--metric", r"logged=logged: (\d+)", "--", made
    )
    assert metric(body, "speed")["values"] == [12.0]  # printed and logged: one result
    assert metric(body, "logged")["values"] == [5.0]
    machine = json.loads((bw.last_run() / "machine.json").read_text())
    assert (machine["hostname"], machine["platform"]) == (phone.serial, "Test-Phone-1-cortex-a76-12-31")
    assert not [m for m in body["results"][0]["metrics"] if "memory" in m["metric"] or "cpu" in m["metric"]]
    assert leftovers(phone) == []


def test_its_log_holds_nothing_from_before(bw, phone):
    bw("run", "--on", f"adb:{phone.serial}", "--", program(bw, "echo here"))
    logged = bw("logs").stdout
    assert "here" in logged
    assert "from before" not in logged


@pytest.mark.parametrize(("text", "says"), [("exit 7", "code 7"), ("kill -SEGV $$", "SIGSEGV")])
def test_how_a_program_failed_is_told(bw, phone, text, says):
    assert says in bw("run", "--on", "adb", "--", program(bw, text), code=1).stdout


def test_odd_names_arrive_whole(bw, phone):
    made = program(bw, 'cat "$1"; printf "%s|" "$@"', name="a 'b' $c é")
    (bw.cwd / "in put").write_text("speed: 3\n")
    body = bw.json(
        "run", "--on", "adb", "--metric", r"speed=speed: (\d+)", "--", made, str(bw.cwd / "in put"), "x'y\"$z"
    )
    assert metric(body, "speed")["values"] == [3.0]
    assert "x'y\"$z|" in bw("logs").stdout


def test_a_device_that_is_unplugged_while_a_program_runs(bw, own_phone):
    made = program(bw, "echo began; sleep 600")
    began = time.monotonic()
    unplugged = threading.Thread(target=unplug_when_running, args=(own_phone,))
    unplugged.start()
    body = bw.json("run", "--on", f"adb:{own_phone.serial}", "--", made, code=None)
    unplugged.join()
    assert time.monotonic() - began < 300  # it did not wait for the program
    result = body["results"][0]
    assert (result["status"], result["reason"]) == ("failed", "agent_lost")
    assert f"device '{own_phone.serial}' was lost" in result["detail"]  # it, or the connection to it, came first


def test_a_run_whose_device_was_lost_is_resumed_where_it_was(bw, own_phone, tmp_path: Path):
    """The launch that was cut is run again, those before it are not."""
    runs, cut, fixed = (tmp_path / name for name in ("runs", "cut", "fixed"))
    made = program(
        bw,
        f"echo x >>{runs}; if [ -e {cut} ] && [ ! -e {fixed} ]; then sleep 600; fi; touch {cut}; "
        'echo "Caffe2Observer {\\"type\\": \\"NET\\", \\"metric\\": \\"latency\\", \\"unit\\": \\"us\\", \\"value\\": 5}"',
    )
    path = written(bw.cwd / "spec.json", {}, {"identifier": "{ID}", "commands": ["{program}"]})
    where = ("--on", f"adb:{own_phone.serial}", "--program", made, "--repeat", "3")
    unplugged = threading.Thread(
        target=unplug_when, args=(own_phone, lambda: runs.exists() and runs.read_text() == "x\nx\n")
    )
    unplugged.start()
    result = bw.json("run", path, *where, code=1)["results"][0]
    unplugged.join()
    assert (result["status"], result["reason"]) == ("failed", "agent_lost")
    fixed.touch()
    plug_in_again(own_phone)
    began = len(runs.read_text().split())
    body = bw.json("run", path, *where, "--resume")
    assert body["results"][0]["status"] == "ok"
    assert metric(body, "latency")["values"] == pytest.approx([5e-6] * 3)
    assert len(runs.read_text().split()) == began + 2


def unplug_when(phone: AdbDevice, happened: Callable[[], bool]) -> None:
    while not happened():
        time.sleep(0.02)
    phone.unplug()


def unplug_when_running(phone: AdbDevice) -> None:
    while not any(text.startswith("job.") for _, _, files in os.walk(phone.temporary) for text in files):
        time.sleep(0.02)
    phone.unplug()


def plug_in_again(phone: AdbDevice) -> None:
    assert phone.server is not None
    phone.server.adb("disconnect", phone.serial)
    phone.unplug_after = None
    phone.start()
    phone.server.connect(phone)


class Told(BoardOutput):
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.printed = b""

    def stdout(self, data: bytes) -> None:
        self.printed += data

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_a_push_that_is_cut_is_never_taken_for_whole(own_phone, tmp_path):
    (tmp_path / "model").write_bytes(os.urandom(3_000_000))
    with AdbBoard(AdbShell(own_phone.serial)) as board:
        own_phone.unplug_after = 1_000_000
        with pytest.raises(ConnectionLost, match="was lost while files were sent"):
            board.push({f"{board.folder}/model": str(tmp_path / "model")})
        plug_in_again(own_phone)
        board.push({f"{board.folder}/model": str(tmp_path / "model")})
        board.pull(f"{board.folder}/model", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == (tmp_path / "model").read_bytes()


def test_what_is_there_already_is_not_sent_again(own_phone, tmp_path):
    (tmp_path / "model").write_bytes(os.urandom(3_000_000))
    before, arrived = own_phone.pushed, []
    for number in range(2):
        with AdbBoard(AdbShell(own_phone.serial)) as board:
            board.push({f"{board.folder}/model": str(tmp_path / "model")})
            board.pull(f"{board.folder}/model", str(tmp_path / f"back{number}"))
        arrived.append(own_phone.pushed - before)
        assert (tmp_path / f"back{number}").read_bytes() == (tmp_path / "model").read_bytes()
    assert arrived[0] >= 3_000_000
    assert arrived[1] == arrived[0], "the second board has it from the first"


def test_files_are_copied_where_the_device_forbids_hard_links(own_phone, tmp_path):
    own_phone.forbid_hard_links()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "run me").write_text("#!/bin/sh\necho ran\n")
    (tree / "run me").chmod(0o755)
    (tree / "link").symlink_to("run me")
    told = Told()
    with AdbBoard(AdbShell(own_phone.serial)) as board:
        board.push({f"{board.folder}/tree": str(tree)})
        ended = board.run(BoardCommand(argv=(f"{board.folder}/tree/link",), cwd=board.folder), told, lambda: False)
    assert (ended.exit_code, told.printed) == (0, b"ran\n")


def test_a_full_device_says_so(own_phone, tmp_path):
    (tmp_path / "model").write_bytes(os.urandom(100_000))
    own_phone.full_after = 0
    with AdbBoard(AdbShell(own_phone.serial)) as board, pytest.raises(CannotMeasure, match="is full; free some space"):
        board.push({f"{board.folder}/model": str(tmp_path / "model")})


def test_a_hot_device_is_waited_for(own_phone):
    status = own_phone.folder / "dumpsys.thermalservice"
    status.write_text("Thermal Status: 2\n")
    told = Told()
    with AdbBoard(AdbShell(own_phone.serial), look_s=0.5) as board:
        threading.Timer(0.3, status.write_text, ["Thermal Status: 0\n"]).start()
        board.run(BoardCommand(argv=("true",), cwd=board.folder), told, lambda: False)
    (said,) = told.notes
    assert re.fullmatch(r"waited \d s for the device to cool down, since it throttles \(moderate\)", said)


def test_a_device_that_stays_hot_is_used_with_a_warning(own_phone):
    (own_phone.folder / "dumpsys.thermalservice").unlink()
    own_phone.zone("cpu-0-0", 81000)
    told = Told()
    with AdbBoard(AdbShell(own_phone.serial), cool_s=0.2, look_s=0.1) as board:
        ended = board.run(BoardCommand(argv=("true",), cwd=board.folder), told, lambda: False)
    assert ended.exit_code == 0
    assert "its processor is at 81 °C and did not cool down within 0 s" in told.notes[0]


def test_a_device_is_used_by_one_run_at_a_time(bw, phone):
    with AdbBoard(AdbShell(phone.serial)):
        said = bw("run", "--on", "adb", "--", "true", code=3).stderr
    assert f"another run is using it (process {os.getpid()})" in said


def test_which_device_is_meant_must_be_clear(bw, phone):
    said = bw("run", "--on", "adb:nope", "--", "true", code=3).stderr
    assert f"device 'nope' is not attached; attached: {phone.serial}" in said


def test_a_specification_runs_on_a_device_with_its_files_and_libraries(bw, phone, tmp_path: Path):
    libraries = tmp_path / "libs"
    libraries.mkdir()
    (libraries / "libx.so").write_text("speed\n")
    made = program(
        bw,
        'read word <"${LD_LIBRARY_PATH%%:*}/libx.so"; echo "PyTorchObserver {\\"type\\": \\"NET\\", \\"metric\\": \\"latency\\", \\"unit\\": \\"us\\", \\"value\\": \\"$(cat "$1")\\"}"; echo done >"$2"',
    )
    (bw.cwd / "net.pb").write_text("125")
    spec = {
        "model": {"category": "x", "description": "x", "framework": "pytorch", "name": "net", "format": "pytorch",
                  "files": {"predict": {"filename": "net.pb", "location": "net.pb"}}},
        "tests": [{"identifier": "{name}-{ID}", "metric": "delay", "warmup": 1, "iter": 3,
                   "preprocess": {"commands": ["echo before"]},
                   "commands": ["{program} {files.predict} {output_files.out}"],
                   "output_files": {"out": {"filename": "out.txt", "location": "{TGTDIR}/out.txt"}}}],
    }  # fmt: skip
    (bw.cwd / "net.json").write_text(json.dumps(spec))
    for folder in ("/data/local/tmp/a b", "tmp", "/data/$HOME"):
        assert (
            "--android-dir"
            in bw("run", "net.json", "--on", "adb", "--program", made, "--android-dir", folder, code=2).stderr
        )
    folder = f"{phone.temporary}/other.folder/"
    libs = ("--shared-libs", str(libraries / "libx.so"))
    body = bw.json("run", "net.json", "--on", "adb", "--program", made, *libs, "--android-dir", folder)
    assert body["results"][0]["status"] == "ok", body["results"][0]
    assert '"value": "125"' in bw("logs").stdout
    assert os.listdir(f"{folder}/benchwright/runs") == []
    assert [path.read_text() for path in bw.last_run().rglob("out.txt")] == ["done\n"]


def test_a_specification_with_steps_and_outputs(bw, phone):
    """Its steps run here, as in FAI-PEP; files, program and what the steps made are sent; what it writes comes back."""
    made = program(bw, 'cat "$2" "$6" > "$4/out.txt"; echo "Caffe2Observer {\\"type\\": \\"NET\\", \\"metric\\": \\"latency\\", '
                       '\\"unit\\": \\"us\\", \\"value\\": 5}"')  # fmt: skip
    test = {
        "identifier": "{ID}",
        "preprocess": {"commands": ["mkdir -p {HOSTDIR}/a", "echo made {INDEX} in $PWD > {input_files.data}"]},
        "commands": ["{program} --net {files.net} --out '{TGTDIR}' --data {input_files.data}"],
        "postprocess": {"commands": ["echo after; cat {output_files.out}"]},
        "input_files": {"data": {"filename": "x", "location": "{HOSTDIR}/a/x"}},
        "output_files": {"out": {"filename": "out.txt", "location": "{TGTDIR}/out.txt"}},
        "platform_args": {"taskset": "1"},
    }
    path = written(bw.cwd / "spec.json", {"files": {"net": file_entry(bw.cwd / "net.pb", "weights\n")}}, test)
    body = bw.json("run", path, "--on", "adb", "--program", made, "--repeat", "3")
    assert metric(body, "latency")["values"] == pytest.approx([5e-6] * 3)
    outputs = sorted((bw.last_run() / "files" / "jobs").glob("*/out.txt"))
    assert [output.read_text() for output in outputs] == [f"weights\nmade {n} in {bw.cwd}\n" for n in range(3)]
    assert f"after\nweights\nmade 0 in {bw.cwd}\n" in bw("logs", "last", "net-0").stdout


def test_a_step_that_fails_here_leaves_the_device_alone(bw, phone):
    made = program(bw, "echo ran")
    test = {"identifier": "{ID}", "preprocess": {"commands": ["echo no; exit 7"]}, "commands": ["{program}"]}
    path = written(bw.cwd / "spec.json", {}, test)
    result = bw.json("run", path, "--on", "adb", "--program", made, code=3)["results"][0]
    assert (result["status"], result["reason"]) == ("failed", "crashed")
    said = bw("logs", "last", "net-0").stdout
    assert "no" in said
    assert "ran" not in said


def test_a_power_test_reads_the_battery_before_and_after(bw, own_phone):
    state = own_phone.folder / "dumpsys.battery"
    state.write_text("  USB powered: false\n  voltage: 4000\n  Charge counter: 2000000\n")
    test = {"identifier": "power", "metric": "power", "warmup": 0, "iter": 1, "commands": ["{program}"]}
    model = {"category": "x", "description": "x", "framework": "generic", "name": "net", "format": "x", "files": {}}
    (bw.cwd / "power.json").write_text(json.dumps({"model": model, "tests": [test]}))
    made = program(bw, f"sleep 0.1; sed -i s/2000000/1999000/ {state}")
    body = bw.json("run", "power.json", "--on", f"adb:{own_phone.serial}", "--program", made)
    assert metric(body, "energy")["values"] == [pytest.approx(0.001 * 3600 * 4)]  # 1 mAh at 4 V
