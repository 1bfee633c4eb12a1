"""A zoo may have an environment of its own, which find and run use by themselves."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from local_wheels import make_wheel

from benchwright.agent.machine.packages import list_packages
from benchwright.cli.main import main
from benchwright.core.errors import InvalidInput
from benchwright.core.model import Model
from benchwright.environments.environment import Installed
from benchwright.environments.installers import choose_installer
from benchwright.environments.package_indexes import PackageIndexes
from benchwright.executors.observer import Observer
from benchwright.kinds.models.zoo import own_environment
from benchwright.kinds.models.zoo.catalogue import ListedZoo, forget_listings
from benchwright.kinds.models.zoo.interpreters import ZooPythons, forget_own_environments
from benchwright.kinds.models.zoo.kind import ZooKind
from benchwright.kinds.models.zoo.own_environment import OwnEnvironmentOptions, install_apart
from benchwright.kinds.models.zoo.wanted import Wanted
from benchwright.runner.requests import options_of
from benchwright.runner.resolve import resolve
from benchwright.runs.provenance.packages import site_folders

_MODELS = "@register_model\ndef resnet_small(pretrained=False, **kwargs):\n    pass\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the wheels of this test; and a torch in the interpreter that is used otherwise."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    forget_listings()
    forget_own_environments()
    asked = own_environment.listed_zoos(sys.executable)
    usual = {name: ListedZoo(zoo=name, torch="2.12.0+cpu") for name in asked}
    monkeypatch.setattr(own_environment, "listed_zoos", lambda python, *_: usual)
    for name, version in (("torch", "2.12.0"), ("torch", "2.13.0"), ("numpy", "1.0")):
        make_wheel(tmp_path / "wheels", name, version)


def install(place: Path, *, zoo: str = "timm", constraints: tuple[str, ...] = (), force: bool = False) -> Installed:
    installer = choose_installer(None, PackageIndexes(no_index=True, find_links=(str(place / "wheels"),)))
    options = OwnEnvironmentOptions(python=sys.executable, constraints=constraints, force=force)
    wanted = [Wanted(name=zoo, words=("timm",), zoo=zoo)]
    (done,) = install_apart(wanted, options, installer, str(place / "base" / "zoos"), Observer())
    return done


def timm(place: Path, module: str | None = None) -> None:
    """A timm with one model, for what lists it reads its source only."""
    make_wheel(place / "wheels", "timm", "1.0", module=module, more={"timm/models/resnet.py": _MODELS})


def ended(*words: str) -> object:
    with pytest.raises(SystemExit) as end:
        main([*words])
    return end.value.code


def versions(done: Installed) -> dict[str, str]:
    return list_packages(site_folders(Path(done.path) / "bin" / "python"))


def test_find_and_run_use_it_and_say_so_unless_python_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timm(tmp_path)
    done = install(tmp_path)
    assert (done.status, done.detail) == ("built", None)
    own = str(tmp_path / "base" / "zoos" / "timm")
    assert done.path == own
    assert versions(done)["torch"] == "2.12.0"  # the version that others are measured with

    assert ended("find", "timm:*", "--base", str(tmp_path / "base")) == 0
    shown = capsys.readouterr()
    assert "timm:resnet_small" in shown.out
    assert f"timm: listed from its own environment, {own}; --python chooses another" in shown.err

    resolved = resolve(options_of({"base": str(tmp_path / "base")}, targets=("timm:resnet_small",)))
    (benchmark,) = resolved.benchmarks
    assert isinstance(benchmark.workload, Model)
    assert benchmark.workload.python == f"{own}/bin/python"
    assert ZooKind().warnings(resolved.benchmarks, resolved.options) == [
        f"timm: measured in its own environment, {own}; --python chooses another"
    ]
    pythons = ZooPythons(sys.executable, str(tmp_path / "base" / "zoos"))
    assert (pythons.of("timm"), pythons.own("timm")) == (sys.executable, None)
    assert install(tmp_path).status == "reused"


def test_a_constraints_file_chooses_the_torch_of_it(tmp_path: Path) -> None:
    timm(tmp_path)
    (tmp_path / "c.txt").write_text("torch==2.13.0\n")
    assert versions(install(tmp_path, constraints=(str(tmp_path / "c.txt"),)))["torch"] == "2.13.0"


def test_one_whose_libraries_do_not_import_is_not_put_into_use(tmp_path: Path) -> None:
    timm(tmp_path, module="raise RuntimeError('built for another torch')")
    done = install(tmp_path)
    assert (done.status, done.detail) == ("failed", "timm does not import (RuntimeError: built for another torch)")
    assert ZooPythons(None, str(tmp_path / "base" / "zoos")).own("timm") is None


def test_one_that_no_longer_works_is_an_error_not_another_interpreter(tmp_path: Path) -> None:
    timm(tmp_path)
    done = install(tmp_path)
    os.unlink(os.path.join(done.path, "pyvenv.cfg"))
    with pytest.raises(InvalidInput, match=r"pyvenv\.cfg is gone.*--zoo timm --own-env --force"):
        ZooPythons(None, str(tmp_path / "base" / "zoos")).of("timm")


def test_a_corpus_of_scripts_has_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("install", "--corpus", "selftest", "--own-env", "--base", str(tmp_path / "base")) == 2
    assert "is a corpus of scripts, not a zoo" in capsys.readouterr().err
    assert ended("install", "--own-env") == 2
