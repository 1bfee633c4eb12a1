"""Both wheels, each built, installed in a clean environment and used from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOOP = """\
from benchprobe import give, iterate
for number in iterate("train", range(50), batch_size=2):
    give(loss=1.0 / (number + 1))
print("the loop saw", number)
"""

pytestmark = pytest.mark.xdist_group("wheels")


def clean_environment() -> dict[str, str]:
    """The caller's, without what would let the checkout shine through."""
    hidden = ("PYTHON", "VIRTUAL_ENV", "COVERAGE", "COV_", "BENCHWRIGHT", "BENCHPROBE")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def call(*argv: str | Path, cwd: Path) -> str:
    """What the command printed on stdout; it must end well."""
    done = subprocess.run(argv, cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(project: Path, out: Path) -> Path:
    call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, project, cwd=out)
    [wheel] = out.glob("*.whl")
    return wheel


def install(wheel: Path, place: Path) -> Path:
    """The folder of programs of a new environment that holds only this wheel and what it needs."""
    call(sys.executable, "-m", "venv", place, cwd=place.parent)
    call(place / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=place.parent)
    return place / "bin"


def content(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def benchwright_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("benchwright-wheel"))


@pytest.fixture(scope="module")
def benchprobe_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT / "packaging" / "benchprobe", tmp_path_factory.mktemp("benchprobe-wheel"))


@pytest.fixture(scope="module")
def benchwright_bin(benchwright_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(benchwright_wheel, tmp_path_factory.mktemp("benchwright-env") / "env")


@pytest.fixture(scope="module")
def benchprobe_bin(benchprobe_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(benchprobe_wheel, tmp_path_factory.mktemp("benchprobe-env") / "env")


def test_wheels_are_pure_and_hold_their_packages_and_nothing_else(
    benchwright_wheel: Path, benchprobe_wheel: Path
) -> None:
    for wheel, packages in (
        (benchwright_wheel, {"benchwright", "benchprobe", "benchmodels", "benchload"}),
        (benchprobe_wheel, {"benchprobe"}),
    ):
        assert wheel.name.endswith("-py3-none-any.whl")
        names = content(wheel)
        tops = {name.partition("/")[0] for name in names}
        assert {top for top in tops if not top.endswith(".dist-info")} == packages
        assert [name for name in names if not _belongs(name)] == []
        assert {f"{package}/py.typed" for package in packages} <= set(names)
        assert [name for name in names if name.endswith("licenses/LICENSE")]


def _belongs(name: str) -> bool:
    """Whether it is metadata, source that is no test, or an asset: of the HTML report, templates, schema, constraints, the shipped benchmarks, the packages it puts into environments."""
    folders, _, file = name.rpartition("/")
    if folders.partition("/")[0].endswith(".dist-info"):
        return True
    assets = {
        "benchwright/report/html/assets": (".css", ".js"),
        "benchwright/report/html/templates": (".html",),
        "benchwright/schemas": (".json",),
        "benchwright/environments/constraints": (".txt",),
        "benchwright/environments/compat_modules/cuda_builds": (".py", ".pth", ".toml"),
    }
    if folders in assets:
        return file.endswith(assets[folders])
    if folders.startswith(("benchwright/templates/", "benchwright/compat/milabench/templates/")):
        return file.endswith(".template")
    if folders.startswith("benchwright/shipped/specifications"):
        ends = (".json", ".py", ".md", ".sh", ".c", ".onnx", ".pt2", ".xml", ".bin", ".npy", ".txt")
        return file.endswith(ends) and "__pycache__" not in folders
    if folders.startswith("benchwright/shipped/"):
        return file.endswith((".py", ".md", ".yaml", ".in", ".txt")) and "__pycache__" not in folders
    if folders.startswith("benchwright/compat/faipep/libraries/"):
        return file.endswith(".py")  # with the names that specifications call them by, such as test_engine.py
    return file.endswith((".py", "py.typed")) and not file.startswith("test_") and "tests" not in folders.split("/")


def test_wheels_hold_no_path_of_this_checkout(benchwright_wheel: Path, benchprobe_wheel: Path) -> None:
    for wheel in (benchwright_wheel, benchprobe_wheel):
        with zipfile.ZipFile(wheel) as archive:
            assert [n for n in archive.namelist() if str(ROOT).encode() + b"/" in archive.read(n)] == []


def test_both_wheels_hold_the_same_benchprobe(benchwright_wheel: Path, benchprobe_wheel: Path) -> None:
    def probe(wheel: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(wheel) as archive:
            return {n: archive.read(n) for n in archive.namelist() if n.startswith("benchprobe/")}

    assert probe(benchwright_wheel) == probe(benchprobe_wheel) != {}
    assert benchwright_wheel.name.split("-")[1] == benchprobe_wheel.name.split("-")[1]


@pytest.mark.long
def test_installed_benchwright_measures_a_command_from_another_folder(benchwright_bin: Path, tmp_path: Path) -> None:
    assert "0.1.0" in call(benchwright_bin / "bw", "--version", cwd=tmp_path)
    argv = [benchwright_bin / "python", "-c", "print('Speed: 12.5 items/sec')"]
    report = call(
        *(
            benchwright_bin / "bw",
            "run",
            "--base",
            tmp_path / "base",
            "--metric",
            r"speed=Speed: ([\d.]+)",
            "--",
            *argv,
        ),
        cwd=tmp_path,
    )
    assert "speed" in report
    assert "12.5" in report
    [stream] = (tmp_path / "base" / "runs").glob("*/*.data")
    assert '"end"' in stream.read_text()


@pytest.mark.long
def test_installed_benchwright_has_its_specifications(benchwright_bin: Path, tmp_path: Path) -> None:
    planned = call(benchwright_bin / "bw", "plan", "examples", "--base", tmp_path / "base", cwd=tmp_path)
    assert "matrix-16" in planned
    assert "mlp_onnx" in planned


@pytest.mark.long
def test_installed_benchwright_measures_a_loop_whose_python_lacks_benchprobe(
    benchwright_bin: Path, tmp_path: Path
) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    # -I would hide PYTHONPATH too: the system's Python as it is, which never saw either wheel.
    bare = Path(sys.base_prefix) / "bin" / "python3"
    call(benchwright_bin / "bw", "run", "--base", tmp_path / "base", "--", bare, "loop.py", cwd=tmp_path)
    [stream] = (tmp_path / "base" / "runs").glob("*/*.data")
    assert '"steps"' in stream.read_text()


@pytest.mark.long
def test_installed_benchprobe_runs_a_script_with_its_dashboard(benchprobe_bin: Path, tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(LOOP)
    assert "the loop saw 49" in call(benchprobe_bin / "python", "loop.py", cwd=tmp_path)
    done = subprocess.run(
        [benchprobe_bin / "python", "-m", "benchprobe", "loop.py"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "the loop saw 49" in done.stdout
    assert "train" in done.stdout + done.stderr
    listed = call(benchprobe_bin / "python", "-m", "pip", "list", cwd=tmp_path)
    assert "benchprobe" in listed
    assert "benchwright" not in listed
