"""Benchmarks made from the templates."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from benchwright.cli.suites.new import command
from benchwright.core.benchmark import Script
from benchwright.core.errors import BenchwrightError, CannotMeasure, InvalidInput
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.setup.new import TEMPLATES, check_name, make_benchmark, template_files
from benchwright.options.table import Options
from benchwright.runner.validation import check_file

ALWAYS = {"README.md", "dev.yaml", "main.py", "requirements.in"}
MORE = {
    "simple": set(),
    "stdout": set(),
    "voir": {"benchfile.py", "prepare.py", "voirfile.py"},
    "model": {"prepare.py"},
}


@pytest.fixture(params=[*TEMPLATES, pytest.param("voir", marks=pytest.mark.compat)])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return make_benchmark("my-bench_2", request.param, tmp_path / "benchmarks")


def test_a_template_has_its_files_and_nothing_else_is_written(made, tmp_path, request):
    assert {path.name for path in made.iterdir()} == ALWAYS | MORE[request.node.callspec.params["made"]]
    assert list((tmp_path / "benchmarks").iterdir()) == [made]


def test_only_prepare_is_executable(made):
    for path in made.iterdir():
        assert os.access(path, os.X_OK) is (path.name == "prepare.py"), path


def test_the_name_is_filled_in_everywhere(made):
    texts = {path.name: path.read_text() for path in made.iterdir()}
    assert not [name for name, text in texts.items() if "BENCHMARK_NAME" in text]
    assert "my-bench_2" in texts["README.md"]
    assert texts["dev.yaml"].count("\nmy-bench_2:\n") == 1


def test_its_suite_has_that_one_benchmark(made):
    [benchmark] = SuiteKind().read(str(made / "dev.yaml"), Options())
    assert benchmark.name == "my-bench_2"
    assert isinstance(benchmark.workload, Script)
    assert benchmark.workload.path == str(made / "main.py")
    assert benchmark.placement.per_device
    assert benchmark.environment.variant == "unpinned"
    assert benchmark.notes == ()
    for named in (benchmark.folder.prepare_script, *benchmark.environment.requirements):
        assert named is None or (made / named).is_file()
    assert (benchmark.folder.prepare_script is not None) == (made / "prepare.py").exists()


def test_the_code_is_clean(made):
    for words in (["format", "--check"], ["check", "--select", "E4,E7,E9,F,I,B", "--target-version", "py39"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--isolated", "--line-length", "120", "."],
            cwd=made,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["simple", pytest.param("model", marks=pytest.mark.long)])
def test_its_loop_can_be_watched_by_hand_at_once(name, tmp_path):
    folder = make_benchmark("mine", name, tmp_path)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BENCH", "MILABENCH"))}
    done = subprocess.run(
        [sys.executable, "-m", "benchprobe", "--json", "--stop", "5", "--warmup", "3", "main.py"],
        cwd=folder,
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    [loop] = json.loads(done.stderr.splitlines()[-1])["loops"]
    assert (loop["loop"], loop["measured_steps"]) == ("train", 5)


def test_a_printed_number_is_what_its_pattern_reads(tmp_path):
    folder = make_benchmark("mine", "stdout", tmp_path)
    done = subprocess.run(
        [sys.executable, "main.py", "--steps", "3"], cwd=folder, capture_output=True, text=True, check=True
    )
    import re

    [benchmark] = SuiteKind().read(str(folder / "dev.yaml"), Options())
    for metric in benchmark.metrics:
        assert len([float(value) for value in re.findall(metric.pattern, done.stdout)]) == 3


@pytest.mark.compat
def test_voir_gives_the_rates_that_were_asked_for(tmp_path):
    pytest.importorskip("voir")
    folder = make_benchmark("mine", "voir", tmp_path)
    stream = tmp_path / "stream"
    argv = shlex.join([sys.executable, "-m", "voir", "--interval", "0.1s", "--skip", "1", "--stop", "3", "main.py"])
    environment = {**os.environ, "DATA_FD": "3", "BENCHWRIGHT_DATA_DIR": str(tmp_path / "data")}
    subprocess.run(["sh", "-c", f"exec {argv} 3> {shlex.quote(str(stream))}"], cwd=folder, env=environment, check=True)
    events = [json.loads(line) for line in stream.read_text().splitlines()]
    assert len([e for e in events if "rate" in e]) >= 3
    assert any("loss" in e for e in events)
    assert (tmp_path / "data" / "mine" / "points.json").is_file()


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        pytest.param("voir", ("BENCHWRIGHT_DATA_DIR", "MILABENCH_DATA_DIR"), marks=pytest.mark.compat),
        pytest.param("model", ("BENCHWRIGHT_DATA_DIR",) * 2, marks=pytest.mark.long),
    ],
)
def test_prepare_makes_data_once_where_it_is_told_to(name, variables, tmp_path):
    folder = make_benchmark("mine", name, tmp_path)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BENCH", "MILABENCH"))}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = []
    for variable in variables:
        told = environment | {variable: str(tmp_path / "data")}
        done = subprocess.run([folder / "prepare.py"], cwd=folder, env=told, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        [file] = (tmp_path / "data" / "mine").iterdir()
        assert done.stdout == f"{file}\n"
        made.append(file.stat().st_mtime_ns)
    assert made[0] == made[1]


def test_a_folder_that_exists_is_left_alone(tmp_path):
    folder = make_benchmark("mine", "simple", tmp_path)
    (folder / "main.py").write_text("mine")
    with pytest.raises(InvalidInput, match="exists already"):
        make_benchmark("mine", "stdout", tmp_path)
    assert (folder / "main.py").read_text() == "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="is not a folder"):
        make_benchmark("file", "simple", tmp_path, force=True)
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="is not a folder"):
        make_benchmark("link", "simple", tmp_path)


def test_force_replaces_the_files_of_the_template_and_no_others(tmp_path):
    folder = make_benchmark("mine", "simple", tmp_path)
    (folder / "main.py").write_text("mine")
    (folder / "notes.txt").write_text("mine")
    make_benchmark("mine", "model", tmp_path, force=True)
    assert (folder / "main.py").read_text() == template_files("model", "mine")["main.py"]
    assert (folder / "notes.txt").read_text() == "mine"
    assert os.access(folder / "prepare.py", os.X_OK)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a/b", "is a path"), ("../x", "is a path"), ("a\\b", "is a path"), ("_x", "private"), ("__", "private"),
        ("", "is not a name"), (".", "is not a name"), ("a b", "is not a name"), ("1a", "is not a name"),
        ("a.b", "is not a name"), ("*", "is not a name"), ("é", "is not a name"), ("a" * 200, "is not a name"),
        ("-x", "is not a name"), ("x\n", "is not a name"), ("null", "YAML does not read"), ("no", "YAML does not read"), ("True", "YAML does not read"),
    ],
)  # fmt: skip
def test_names_that_cannot_be_used(name, said, tmp_path):
    with pytest.raises(InvalidInput, match=said):
        make_benchmark(name, "simple", tmp_path)
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=20))
def test_a_name_that_is_accepted_is_what_the_suite_calls_it(name):
    import yaml

    try:
        check_name(name)
    except InvalidInput:
        return
    assert list(yaml.safe_load(template_files("simple", name)["dev.yaml"])) == [name]
    assert Path(name).name == name


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotMeasure, match="choose another place with --dir"):
        make_benchmark("mine", "simple", tmp_path / "file")


def new(*words: str) -> str:
    result = CliRunner().invoke(command, list(words), catch_exceptions=True)
    if result.exception is not None:
        raise result.exception
    return result.output


def test_the_command_says_what_to_do_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert new("mine").splitlines() == [
        "created mine: README.md, dev.yaml, main.py, requirements.in",
        "next:",
        "  benchwright run mine",
    ]
    assert check_file("mine").errors == ()
    assert "  benchwright run 'in here/mine'" in new("mine", "--dir", "in here").splitlines()
    elsewhere = tmp_path / "away"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert f"benchwright run {tmp_path}/too" in new("--name", "too", "--dir", str(tmp_path))


def test_the_command_refuses_what_it_does_not_know(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BenchwrightError, match="there is no template 'simpel'; did you mean 'simple'"):
        new("mine", "--template", "simpel")
    with pytest.raises(BenchwrightError, match="give one name"):
        new()
    with pytest.raises(BenchwrightError, match="give one name"):
        new("a", "--name", "b")


@pytest.mark.long
def test_templates_come_with_the_wheel(tmp_path):
    import zipfile

    root = Path(__file__).resolve().parents[4]
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, root]
    subprocess.run(build, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'installed')!r})\n"
    code += "import benchwright.cli.suites.new as new; print(new.__file__, flush=True); new.command()"
    for name in TEMPLATES:
        words = [sys.executable, "-P", "-c", code, f"its-{name}", "--template", name]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(str(tmp_path / "installed"))
        assert (tmp_path / f"its-{name}" / "main.py").is_file()
