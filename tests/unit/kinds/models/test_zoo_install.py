"""What is installed into the interpreter that models are measured with is tried, and undone if it breaks something."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from local_wheels import make_wheel

from benchwright.agent.machine.packages import list_packages
from benchwright.environments.environment import Installed
from benchwright.environments.installers import Pip, Uv, choose_installer
from benchwright.environments.package_indexes import PackageIndexes
from benchwright.environments.tools import Tools
from benchwright.executors.observer import Observer
from benchwright.kinds.models.zoo import install as zoo_install
from benchwright.kinds.models.zoo.catalogue import ListedZoo
from benchwright.kinds.models.zoo.install import install_wanted
from benchwright.kinds.models.zoo.wanted import Wanted
from benchwright.runs.provenance.packages import site_folders

FOR_ANOTHER = "raise RuntimeError('operator torchvision::nms does not exist')\n"
USES_IT = "import importlib.util\nif importlib.util.find_spec('torchvision'): import torchvision\n"


@pytest.fixture(params=["uv", "pip"])
def installer(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uv | Pip:
    """Which knows the wheels of this test only."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return choose_installer(request.param, PackageIndexes(no_index=True, find_links=(str(tmp_path / "wheels"),)))


def some(*words: str) -> Wanted:
    return Wanted(name="some", words=words)


def installed(wanted: Wanted, place: Path, installer: Uv | Pip, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Into an environment that has torch and a library that uses torchvision where it is there; made with uv, if that is here."""
    wheels = place / "wheels"
    for name, version, module in (
        ("torch", "2.13.0+cpu", None),
        ("numpy", "1.0", None),
        ("numpy", "2.0", None),
        ("timm", "1.0", USES_IT),
        ("torchvision", "0.28.0", FOR_ANOTHER),
        ("harmless", "1.0", None),
    ):
        make_wheel(wheels, name, version, module=module)
    quickest = choose_installer(None, installer.indexes)
    log, env = str(place / "log"), quickest.environment(os.environ)
    python = str(place / "env" / "bin" / "python")
    assert Tools().run(quickest.create(str(place / "env"), sys.executable), log=log, env=env) == 0
    assert Tools().run(quickest.install(python, ["torch", "numpy==1.0", "timm"]), log=log, env=env) == 0
    zoo = ListedZoo(zoo="x", torch="2.13.0+cpu")
    monkeypatch.setattr(zoo_install, "listed_zoos", lambda *_: {"x": zoo})  # ours, which knows the real torch only
    (done,) = install_wanted([wanted], python, installer, place / "base", Observer())
    return done


def test_an_install_that_breaks_a_library_is_undone_with_the_reason(
    installer: Uv | Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = installed(some("torchvision", "numpy==2.0"), tmp_path, installer, monkeypatch)
    assert done.status == "failed"
    assert str(done.detail).startswith(
        "with torchvision 0.28.0 beside torch 2.13.0+cpu, torchvision does not import "
        "(RuntimeError: operator torchvision::nms does not exist); undone; add --index with PyTorch's address of builds for cpu"
    )
    assert "python -m venv some-env" in str(done.detail)
    packages = list_packages(site_folders(tmp_path / "env" / "bin" / "python"))
    assert {name: packages.get(name) for name in ("torch", "numpy", "timm", "torchvision")} == {
        "torch": "2.13.0+cpu",
        "numpy": "1.0",
        "timm": "1.0",
        "torchvision": None,
    }


def test_an_install_after_which_all_imports_as_before_stays(
    installer: Uv | Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = installed(some("harmless"), tmp_path, installer, monkeypatch)
    assert (done.status, done.detail) == ("built", None)
    assert "harmless" in list_packages(site_folders(tmp_path / "env" / "bin" / "python"))


@pytest.mark.parametrize("installer", ["uv"], indirect=True)  # whichever installed it
def test_the_way_out_of_an_install_that_breaks_is_a_command_to_paste(
    installer: Uv | Pip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = Wanted(name="timm", words=("torchvision",), zoo="timm", options=("--base", "/a b"))
    done = installed(wanted, tmp_path, installer, monkeypatch)
    assert str(done.detail).endswith("environment: benchwright install --zoo timm --own-env --base '/a b'")
