"""Packages that lie as source in a folder: what is read of them, and the wheels made of them."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.environments.local_packages import read_local_package, required_packages

POETRY = """
[tool.poetry]
name = "Mate_Bench"
version = "0.3.1"
[tool.poetry.dependencies]
python = ">=3.8,<4.0"
alpha = "^1.2"
zero = "^0.4.1"
any = "*"
exact = "2.0"
pinned = {version = ">=3", optional = true}
[tool.poetry.scripts]
benchrun = "mate_bench.run:main"
"""


def package(folder: Path, project: str = POETRY, **files: str) -> str:
    (folder / "Mate_Bench").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(project)
    for name, text in {"__init__": "", "run": "def main():\n    print('ran')\n", **files}.items():
        (folder / "Mate_Bench" / f"{name}.py").write_text(text)
    return str(folder)


def test_poetrys_versions_are_written_as_pip_does(tmp_path: Path) -> None:
    found = read_local_package(package(tmp_path))
    assert found.requires == ("alpha>=1.2,<2", "zero>=0.4.1,<0.5", "any", "exact==2.0")
    assert required_packages(str(tmp_path)) == ("alpha", "zero", "any", "exact")
    assert (found.name, found.version.partition("+")[0]) == ("mate-bench", "0.3.1")


def test_another_content_is_another_version_and_the_same_is_the_same(tmp_path: Path) -> None:
    one, same = read_local_package(package(tmp_path / "a")), read_local_package(package(tmp_path / "b"))
    other = read_local_package(package(tmp_path / "c", run="def main(): pass\n"))
    assert one.version == same.version != other.version
    (tmp_path / "a" / "Mate_Bench" / "__pycache__").mkdir()
    (tmp_path / "a" / "Mate_Bench" / "__pycache__" / "run.pyc").write_bytes(b"x")
    assert read_local_package(str(tmp_path / "a")).version == one.version, "what Python leaves behind counts"
    first, again = (Path(one.write_wheel(str(tmp_path / name))) for name in ("x", "y"))
    assert first.read_bytes() == again.read_bytes()


def test_the_wheel_is_one_that_pip_installs_with_its_program(tmp_path: Path) -> None:
    project = '[project]\nname = "mate"\nversion = "1"\n[project.scripts]\nbenchrun = "mate.run:main"\n'
    (tmp_path / "mate").mkdir()
    (tmp_path / "mate" / "run.py").write_text("def main():\n    print('ran')\n")
    (tmp_path / "pyproject.toml").write_text(project)
    wheel = read_local_package(str(tmp_path)).write_wheel(str(tmp_path / "wheels"))
    assert zipfile.ZipFile(wheel).testzip() is None
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--prefix",
        str(tmp_path / "env"),
        wheel,
    ]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    (program,) = (tmp_path / "env").glob("bin/benchrun")
    ran = subprocess.run([sys.executable, program], capture_output=True, text=True, env={"PYTHONPATH": str(site)})
    assert ran.stdout == "ran\n"


@pytest.mark.parametrize(
    ("project", "said"), [("[project", "cannot be read"), ('[project]\nname = "other"\n', "not beside it")]
)
def test_one_that_is_broken_is_refused_with_its_file(tmp_path: Path, project: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_local_package(package(tmp_path, project))
    assert said in str(caught.value)
    assert str(tmp_path / "pyproject.toml") in str(caught.value)
