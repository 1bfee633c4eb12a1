"""Environments of revisions see the packages of the current one, and change nothing in it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from local_wheels import make_packages, make_wheel, offline
from small_repository import SmallRepository

from benchwright.core.errors import InvalidInput
from benchwright.regress.build_environment import inherited_python, make_environment
from benchwright.regress.builder import build
from benchwright.regress.builds import BuildRecipe, RevisionNotBuilt
from benchwright.regress.packages import build_packages
from benchwright.regress.repository import GitRepository


@pytest.fixture
def current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's environment with alpha 1, torch 1, a program of alpha's, and pip where tests have it."""
    folder, wheels = tmp_path / "current", tmp_path / "wheels"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    site = site_of(folder)
    (site / "pip.pth").write_text(f"{distribution('pip').locate_file('')}\n")
    make_packages(wheels)
    make_wheel(wheels, "torch", "2.0")
    make_wheel(wheels, "hungry", "1.0", ["torch>=1", "alpha>=2"])
    for wheel in (wheels / "alpha-1.0-py3-none-any.whl", make_wheel(wheels, "torch", "1.0")):
        zipfile.ZipFile(wheel).extractall(site)
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    for name, value in offline(wheels, tmp_path / "uv-cache").items():
        monkeypatch.setenv(name, value)
    program = folder / "bin" / "alpha-program"
    program.write_text(f"#!{folder}/bin/python3\nimport alpha, sys\nprint(alpha.__version__, sys.prefix)\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
    return folder


def site_of(environment: Path) -> Path:
    [site] = environment.glob("lib/python3*/site-packages")
    return site


def run(*argv: object, env: dict[str, str] | None = None) -> str:
    variables = {**os.environ, **(env or {})}
    return subprocess.run([*map(str, argv)], check=True, capture_output=True, text=True, env=variables).stdout.strip()


def version(python: object, package: str) -> str:
    return run(python, "-c", f"import {package}; print({package}.__version__)")


def test_another_version_hides_the_current_one_and_leaves_it_alone(current: Path, tmp_path: Path) -> None:
    built = build_packages(["hungry"], tmp_path / "cache")
    own = site_of(Path(str(built.python)).parent.parent).glob("*.dist-info")
    assert sorted(each.name for each in own) == ["alpha-2.0.dist-info", "hungry-1.0.dist-info"]
    assert version(built.python, "alpha") == "2.0"
    assert version(built.python, "torch") == "1.0"  # not upgraded by the way
    assert version(current / "bin" / "python", "alpha") == "1.0"
    path = os.pathsep.join([*built.path, os.environ["PATH"]])
    prefix = Path(str(built.python)).parent.parent
    assert run("/bin/sh", "-c", "alpha-program", env={"PATH": path}) == f"2.0 {prefix}"
    assert build_packages(["hungry"], tmp_path / "cache").reused


@pytest.mark.long
def test_another_package_in_the_current_environment_makes_another_build(current: Path, tmp_path: Path) -> None:
    build_packages(["alpha"], tmp_path / "cache")
    (site_of(current) / "new_package-1.0.dist-info").mkdir()
    assert not build_packages(["alpha"], tmp_path / "cache").reused


def test_what_cannot_be_installed_is_said_in_one_sentence(current: Path, tmp_path: Path) -> None:
    with pytest.raises(RevisionNotBuilt, match=r"pip:nowhere==3 could not be installed: .*nowhere"):
        build_packages(["nowhere==3"], tmp_path / "cache")
    with pytest.raises(InvalidInput, match="'--pre' is an option of pip"):
        build_packages(["--pre", "alpha"], tmp_path / "cache")


def test_an_editable_install_of_the_repository_is_not_inherited(current: Path, tmp_path: Path) -> None:
    small = SmallRepository(tmp_path / "project")
    small.commit("one", {"src/measured.py": "here = __file__\n"})
    site = site_of(current)
    (site / "__editable__.measured-1.pth").write_text(f"{small.folder}/src\n")
    (site / "__editable___other_finder.py").write_text(f"MAPPING = {{'measured': '{small.folder}/src/measured.py'}}\n")
    (site / "__editable__.other-1.pth").write_text("import __editable___other_finder\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept.py").write_text("")
    (site / "kept.pth").write_text(f"{tmp_path}/elsewhere\n")
    assert run(current / "bin" / "python", "-c", "import measured; print(measured.here)").startswith(str(small.folder))
    repository = GitRepository.open(small.folder)
    built = build(repository, repository.commit("HEAD"), BuildRecipe(command="true"), tmp_path / "cache")
    assert run(built.python, "-c", "import kept; print('kept')") == "kept"
    with pytest.raises(subprocess.CalledProcessError):
        run(built.python, "-c", "import measured")


def test_pip_in_a_build_installs_into_the_build_s_environment(current: Path, tmp_path: Path) -> None:
    small = SmallRepository(tmp_path / "project")
    small.commit("one", {"requirements.txt": "alpha==2.0\n"})
    repository = GitRepository.open(small.folder)
    recipe = BuildRecipe(command="pip install -q -r requirements.txt && python -c 'import alpha' && pip --version")
    built = build(repository, repository.commit("HEAD"), recipe, tmp_path / "cache")
    assert version(built.python, "alpha") == "2.0"
    assert version(current / "bin" / "python", "alpha") == "1.0"


def test_an_interpreter_that_does_not_work_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is no Python that works"):
        inherited_python("/bin/false")


@pytest.mark.long
def test_an_environment_without_pip_gets_one(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    made = make_environment(tmp_path / "venv", inherited_python(str(bare / "bin" / "python")), None)
    assert "venv" in run(tmp_path / "venv" / "bin" / "pip", "--version")
    assert made == tmp_path / "venv" / "bin" / "python"
