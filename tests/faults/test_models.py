"""Models that crash or hang while they are built, and builds that break. (What goes wrong in calls: the unit tests.)"""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest
from forked_python import ForkedPython
from measured_models import Models
from onnx_models import looked_up
from processes import carrying, kill, wait_for

pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

# Is well behaved when called, and goes wrong in one of several ways when it is exported or compiled.
SCRIPT = """
import os, signal, subprocess, sys, time
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        if torch.compiler.is_exporting() or torch.compiler.is_compiling():
            if os.environ["WAY"] == "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
            time.sleep(300)
        return self.layer(x)

Net()(torch.ones(2, 4))
"""


@pytest.fixture
def models(tmp_path: Path, forked_python: ForkedPython) -> Models:
    return Models(tmp_path, forked_python)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory, forked_python: ForkedPython) -> tuple[Path, str]:
    """The script, and its model's identity."""
    models = Models(tmp_path_factory.mktemp("net"), forked_python)
    path = models.script(SCRIPT)
    return path, models.identity(path)


def left_of(builds: Path) -> list[str]:
    return [path.name for path in builds.iterdir() if path.suffix != ".lock"]


@pytest.mark.long
def test_an_exporter_that_crashes_ends_alone(models: Models, net: tuple[Path, str]) -> None:
    path, identity = net
    told = models.run(path, identity=identity, runtime="onnxruntime", env={"WAY": "segfault"})
    assert told.code == 0
    failure = told.one("failure")
    assert (failure["kind"], failure["stage"]) == ("crashed", "export"), told.errors
    assert "SIGSEGV" in failure["text"]
    assert left_of(models.builds) == [], "nothing half built is left"


def test_an_endless_export_is_ended_with_all_it_has_started(models: Models, net: tuple[Path, str]) -> None:
    path, identity = net
    mark = f"{models.folder}-endless"
    env = {"WAY": "endless", "MARK": mark}
    # Started afresh: in a forked process the mark could not be seen.
    told = models.finish(models.start(path, identity=identity, runtime="onnxruntime", build_timeout=5, env=env))
    failure = told.one("failure")
    assert (failure["kind"], failure["stage"]) == ("timed_out", "export")
    assert "export took longer than 5 s" in failure["text"]
    assert wait_for(lambda: carrying(mark) == [])


def test_a_build_whose_parent_is_killed_ends_too(models: Models, net: tuple[Path, str]) -> None:
    path, identity = net
    mark = f"{models.folder}-killed"
    process, _ = models.start(path, identity=identity, runtime="onnxruntime", env={"WAY": "endless", "MARK": mark})
    assert wait_for(lambda: len(carrying(mark)) >= 2)
    process.kill()
    process.communicate()
    # What the export itself had started by then is the agent's to end.
    assert wait_for(lambda: not any(b"benchmodels" in command_line(each) for each in carrying(mark)))
    kill(*carrying(mark))


def command_line(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.long
def test_an_endless_compilation_is_ended_with_all_it_has_started(models: Models, net: tuple[Path, str]) -> None:
    path, identity = net
    mark = f"{models.folder}-compiled"
    env = {"WAY": "endless", "MARK": mark}
    told = models.finish(models.start(path, identity=identity, runtime="torch-compile", build_timeout=3, env=env))
    assert told.code == 0
    assert (told.one("failure")["kind"], told.one("failure")["stage"]) == ("timed_out", "compile")
    assert wait_for(lambda: carrying(mark) == [])


def tiny(models: Models) -> dict[str, Any]:
    return {"file": str(looked_up(models.folder)), "runtime": "onnxruntime", "shapes": {"ids": [3, 6]}}


def test_a_corrupted_build_is_put_aside_and_made_again(models: Models) -> None:
    target = tiny(models)
    assert models.run(**target).one("check")["ok"]
    (entry,) = [path for path in models.builds.iterdir() if path.is_dir()]
    content = bytearray((entry / "reference.npz").read_bytes())
    content[-40] ^= 0xFF
    (entry / "reference.npz").write_bytes(content)
    told = models.run(**target)
    assert told.one("check")["ok"]
    assert told.steps == {"reference": False}
    assert "reference.npz" in told.messages
    assert models.run(**target).steps == {"reference": True}


def test_of_two_that_need_the_same_build_one_makes_it(models: Models) -> None:
    target = tiny(models)
    started = [models.start(**target) for _ in range(2)]
    told = [models.finish(each) for each in started]
    assert all(each.one("check")["ok"] for each in told)
    assert sorted(each.steps["reference"] for each in told) == [False, True]


def test_a_full_disk_is_told_and_leaves_nothing_half_written(models: Models) -> None:
    target = {**tiny(models), "shapes": {"ids": [4000, 6]}}
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        started = models.start(**target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told = models.finish(started)
    assert told.code == 0
    assert "File too large" in told.one("failure")["text"]
    assert left_of(models.builds) == []


SLOW_REFERENCE = """
import os, time
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        if x.dtype == torch.float64:
            time.sleep(float(os.environ["SLOW_S"]))
        return self.layer(x)

torch.manual_seed(0)
Net()(torch.ones(2, 4))
"""


@pytest.mark.parametrize(
    ("runtime", "why"),
    [
        pytest.param("onnxruntime", "computing its reference took longer than 2 s", marks=pytest.mark.long),
        ("torch-eager", "checking its outputs took longer than 4 s"),
    ],
)
def test_what_was_measured_is_kept_though_checking_it_takes_too_long(models: Models, runtime: str, why: str) -> None:
    path = models.script(SLOW_REFERENCE)
    identity = models.identity(path)
    told = models.run(path, identity=identity, runtime=runtime, timeout_s=4, env={"SLOW_S": "300"})
    assert (told.code, told.all("failure")) == (0, []), told.errors
    assert told.measured_calls == 20
    check = told.one("check")
    assert (check["ok"], check["claimed"], check["figures"]) == (True, False, {})
    assert check["detail"] == f"not checked: {why}, so nothing is claimed"
    assert check["detail"] in told.messages

    told = models.run(path, identity=identity, runtime=runtime, timeout_s=4, env={"SLOW_S": "300"})
    assert not told.one("check")["claimed"]
    assert all(told.steps.values()), "a build without a reference is kept, too"
    told = models.run(path, identity=identity, runtime=runtime, timeout_s=200, env={"SLOW_S": "0"})
    assert told.one("check")["claimed"], "with more time it is built again"
