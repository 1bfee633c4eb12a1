"""Which files a command is made of."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Command
from benchwright.core.job import Job
from benchwright.kinds.registry import kind_of
from benchwright.runs.provenance.code_files import code_files


def files_of(folder: Path, *argv: str, of: BenchmarkFolder | None = None, **fields: Any) -> set[str]:
    """By their names below `folder`; what lies elsewhere is left out."""
    job = Job(**{"id": "b", "benchmark": "b", "argv": argv, "cwd": str(folder), "stream": "", "log": "", **fields})
    benchmark = Benchmark(name="b", workload=Command(argv=argv, cwd=str(folder)), source="", folder=of)
    found = code_files(job, kind_of(benchmark).code_files(benchmark), os.environ["PATH"])
    assert len(found) == len(set(found))
    return {os.path.relpath(path, folder) for path in found if path.startswith(f"{folder}/")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "train.py": "import os, helper\nfrom models import small\nfrom models.big import Big\n",
        "helper.py": "import deep.inner as d\n",
        "deep/__init__.py": "",
        "deep/inner.py": "from . import sibling\nfrom .cousin import x, y\nfrom ..models import large\n",
        "deep/sibling.py": "", "deep/cousin.py": "", "deep/unused.py": "",
        "models/__init__.py": "from . import small\n", "models/small.py": "", "models/big.py": "", "models/large.py": "",
        "models/unused.py": "", "unused.py": "", "config.yaml": "", "results.json": "", "data.bin": "", "run.sh": "",
        "package/__main__.py": "import package.work\n", "package/__init__.py": "", "package/work.py": "",
        "elsewhere/library.py": "", "broken.py": "def (:\nimport helper\n", "loop_a.py": "import loop_b", "loop_b.py": "import loop_a",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


OWN = {
    *("train.py", "helper.py", "deep/__init__.py", "deep/inner.py", "deep/sibling.py", "deep/cousin.py"),
    *("models/__init__.py", "models/small.py", "models/big.py", "models/large.py"),
}


def test_a_script_and_the_modules_beside_it_that_it_imports(project: Path) -> None:
    assert files_of(project, "python", "train.py", "--lr", "0.1") == OWN
    assert files_of(project, "torchrun", "--nproc_per_node", "2", "train.py") == OWN


def test_settings_count_and_what_the_program_writes_does_not(project: Path) -> None:
    words = ("--config", "config.yaml", "--output", "results.json", "--data", "data.bin")
    assert files_of(project, "python", "train.py", *words) == {*OWN, "config.yaml"}
    assert files_of(project, "prog", "--config=config.yaml", "--out=results.json", "-o", "helper.py") == {"config.yaml"}


def test_a_module_that_is_run_by_its_name(project: Path) -> None:
    assert files_of(project, "python", "-m", "package") == {
        "package/__init__.py", "package/__main__.py", "package/work.py",
    }  # fmt: skip


def test_a_line_for_a_shell(project: Path) -> None:
    line = "cd . && python helper.py | tee > results.json; sh run.sh 2> 'config.yaml'"
    assert files_of(project, line, shell=True) >= {"helper.py", "run.sh", "deep/inner.py"}
    assert not files_of(project, line, shell=True) & {"results.json", "config.yaml"}
    assert files_of(project, "echo 'unclosed train.py", shell=True) == OWN  # split at spaces, at the worst


def test_what_is_on_the_path_of_the_program(project: Path) -> None:
    (project / "uses.py").write_text("import library\n")
    assert files_of(project, "python", "uses.py") == {"uses.py"}
    env = {"PYTHONPATH": str(project / "elsewhere")}
    assert files_of(project, "python", "uses.py", env=env) == {"uses.py", "elsewhere/library.py"}


def test_a_folder_of_a_suite_counts_whole(project: Path) -> None:
    (project / "bench" / "__pycache__").mkdir(parents=True)
    (project / "_shared").mkdir()
    for name in ("bench/main.py", "bench/data.txt", "bench/__pycache__/x.pyc", "bench/.hidden", "_shared/common.py"):
        (project / name).write_text("")
    folder = BenchmarkFolder(path=str(project / "bench"), group="g")
    assert files_of(project, "true", of=folder) == {"bench/main.py", "bench/data.txt", "_shared/common.py"}


def test_circles_and_broken_sources_do_no_harm(project: Path) -> None:
    assert files_of(project, "python", "loop_a.py") == {"loop_a.py", "loop_b.py"}
    assert "helper.py" in files_of(project, "python", "broken.py")
    assert files_of(project, "python", "-c", "import train") == set()
    assert files_of(project) == set()


def test_the_program_itself_counts_with_its_links_followed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "prog").symlink_to(real)
    assert files_of(tmp_path, "prog", path=(str(tmp_path / "bin"),)) == {"real"}
    assert files_of(tmp_path, "./real", "x") == {"real"}
