"""The copy of benchprobe that measured programs get is compared with ours before it is used."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import benchprobe
from benchwright.artifacts.probe_folder import ProbeWatch, probe_folder
from benchwright.kinds.models.model_file import ModelFileKind
from benchwright.kinds.models.script import ScriptKind

PACKAGES = ("benchprobe", "benchmodels")


def edit(folder: Path) -> None:
    with open(folder / "benchprobe" / "config.py", "a") as file:
        file.write("# faster\n")


def edit_keeping_size_and_time(folder: Path) -> None:
    path = folder / "benchprobe" / "version.py"
    before = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove_one(folder: Path) -> None:
    (folder / "benchprobe" / "config.py").unlink()


def cut_short(folder: Path) -> None:
    os.truncate(folder / "benchprobe" / "config.py", 10)


def add_beside(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("raise SystemExit('hijacked')\n")


def add_inside(folder: Path) -> None:
    (folder / "benchmodels" / "torch.py").write_text("")


def link_elsewhere(folder: Path) -> None:
    (folder / "benchprobe" / "config.py").unlink()
    (folder / "benchprobe" / "config.py").symlink_to(Path(benchprobe.__file__).parent / "config.py")


def replace_by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("")


def replace_by_a_link(folder: Path) -> None:
    aside = folder.rename(folder.with_name("elsewhere"))
    edit(aside)
    folder.symlink_to(aside)


def byte_code_of_another_source(folder: Path) -> None:
    other = folder.parent / "other.py"
    other.write_text("raise SystemExit('hijacked')\n")
    cache = folder / "benchprobe" / "__pycache__"
    cache.mkdir(exist_ok=True)
    py_compile.compile(str(other), cfile=str(cache / f"config.{sys.implementation.cache_tag}.pyc"))


def byte_code_that_is_never_checked(folder: Path) -> None:
    source = folder / "benchprobe" / "config.py"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), invalidation_mode=mode)


TAMPERINGS = [
    edit, edit_keeping_size_and_time, remove_one, cut_short, add_beside, add_inside, link_elsewhere, replace_by_a_file,
    replace_by_a_link, byte_code_of_another_source, byte_code_that_is_never_checked,
]  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERINGS)
def test_what_is_not_ours_is_replaced_and_said(tmp_path: Path, tamper: Callable[[Path], None]) -> None:
    folder = probe_folder(tmp_path, packages=PACKAGES)
    tamper(folder)
    said: list[str] = []
    assert probe_folder(tmp_path, said.append, PACKAGES) == folder
    assert len(said) == 1
    assert str(folder) in said[0]
    assert "was replaced" in said[0]
    config = folder / "benchprobe" / "config.py"
    assert config.read_bytes() == (Path(benchprobe.__file__).parent / "config.py").read_bytes()
    assert sorted(p.name for p in folder.iterdir()) == ["benchmodels", "benchprobe"]
    assert not list(tmp_path.glob(".benchprobe-*"))
    assert probe_folder(tmp_path, said.append, PACKAGES) == folder
    assert len(said) == 1


def test_byte_code_that_python_makes_of_it_is_left_alone(tmp_path: Path) -> None:
    folder = probe_folder(tmp_path, packages=PACKAGES)
    use = "import benchprobe, benchmodels.build.builder; print(benchprobe.__file__)"
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")}
    done = subprocess.run(
        [sys.executable, "-c", use],
        env=env | {"PYTHONPATH": str(folder)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(folder))
    cached = list((folder / "benchprobe" / "__pycache__").iterdir())
    assert cached
    said: list[str] = []
    assert probe_folder(tmp_path, said.append, PACKAGES) == folder
    assert said == []
    assert list((folder / "benchprobe" / "__pycache__").iterdir()) == cached


def test_only_models_get_benchmodels(tmp_path: Path) -> None:
    plain, models = probe_folder(tmp_path), probe_folder(tmp_path, packages=PACKAGES)
    assert sorted(p.name for p in plain.iterdir()) == ["benchprobe"]
    assert (models / "benchmodels" / "__main__.py").is_file()
    assert ScriptKind().probe_packages == ModelFileKind().probe_packages == PACKAGES


def test_a_program_that_changes_it_during_a_run_is_noticed_once(tmp_path: Path) -> None:
    watch = ProbeWatch(tmp_path)
    py_compile.compile(str(watch.folder / "benchprobe" / "config.py"))
    assert not watch.was_changed()
    edit_keeping_size_and_time(watch.folder)
    assert watch.was_changed()
    assert not watch.was_changed()


def test_several_that_make_it_at_the_same_time_end_up_with_the_same(tmp_path: Path) -> None:
    make = (
        "import sys; from pathlib import Path; from benchwright.artifacts.probe_folder import probe_folder; "
        "print(probe_folder(Path(sys.argv[1])))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", make, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in started}) == 1
    assert [p.name.startswith("benchprobe-") for p in tmp_path.iterdir()] == [True]


def test_programs_find_it_compiled_even_where_python_writes_no_byte_code(tmp_path: Path) -> None:
    folder = probe_folder(tmp_path, packages=PACKAGES)
    variables = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-v", "-c", "import benchprobe.loop.probe, benchmodels.settings"]
    said = subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, text=True, check=True).stderr
    used = [line for line in said.splitlines() if line.startswith("# code object from") and str(folder) in line]
    assert any("settings" in line for line in used)
    assert [line for line in used if not line.endswith(".pyc'")] == []
