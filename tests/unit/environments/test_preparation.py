"""What a preparation depends on, and what its mark tells."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchwright.core.benchmark import Benchmark
from benchwright.kinds.suite.setup.preparation import Marks, Prepared, changes, contents, missing_data, preparation_of


def identity(benchmark: Benchmark) -> str:
    found = preparation_of(benchmark)
    assert found is not None
    return found.identity


def test_without_a_script_there_is_nothing_to_prepare(benchmark_of: Any) -> None:
    assert preparation_of(benchmark_of()) is None
    assert preparation_of(benchmark_of(prepare_script=None, files={"prepare.py": ""})) is None


def test_the_same_script_and_words_are_the_same_preparation(benchmark_of: Any) -> None:
    one = benchmark_of("one", {"prepare.py": "x = 1\n"}, folder="shared", args=("--model", "a"))
    other = benchmark_of("other", folder="shared", args=("--model", "a"))
    assert identity(one) == identity(other)
    assert identity(benchmark_of("third", folder="shared", args=("--model", "b"))) != identity(one)


@pytest.mark.parametrize("file", ["prepare.py", "data_set.py", "parts/__init__.py", "parts/deep.py"])
def test_code_that_the_script_imports_counts(benchmark_of: Any, file: str) -> None:
    benchmark = benchmark_of(files={"prepare.py": "import os, data_set\n", "data_set.py": "from parts.deep import x\n"})
    parts = Path(benchmark.folder.path) / "parts"
    parts.mkdir()
    for name in ("__init__.py", "deep.py"):
        (parts / name).write_text("x = 1\n")
    before = identity(benchmark)
    with open(Path(benchmark.folder.path) / file, "a") as changed:
        changed.write("# changed\n")
    assert identity(benchmark) != before


def test_code_that_it_does_not_import_does_not_count(benchmark_of: Any) -> None:
    benchmark = benchmark_of(files={"prepare.py": "x = 1\n", "main.py": "y = 1\n"})
    before = identity(benchmark)
    (Path(benchmark.folder.path) / "main.py").write_text("y = 2\n")
    assert identity(benchmark) == before


def test_variables_of_the_entry_count(benchmark_of: Any) -> None:
    benchmark = benchmark_of(files={"prepare.py": ""})
    assert identity(msgspec.structs.replace(benchmark, env={"SET": "small"})) != identity(benchmark)


def mark_of(data: Path, *names: str) -> Prepared:
    made = {str(data): names}
    return Prepared(
        benchmark="b", definition="/d", script="/d/prepare.py", args=(), made=made, finished=1.0, seconds=1.0
    )


def test_a_mark_tells_what_is_gone(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "words.txt").write_text("")
    mark = mark_of(tmp_path, "images", "words.txt")
    assert missing_data(mark) is None
    shutil.rmtree(tmp_path / "images")
    assert missing_data(mark) == str(tmp_path / "images")


def test_marks_are_kept_below_the_data_and_damaged_ones_are_none(tmp_path: Path) -> None:
    marks = Marks(str(tmp_path))
    Path(marks.folder).mkdir()
    assert marks.read("1234") is None
    marks.write("1234", mark_of(tmp_path, "images"))
    assert marks.read("1234") == mark_of(tmp_path, "images")
    (Path(marks.folder) / "1234.json").write_text('{"format": 1')
    assert marks.read("1234") is None
    marks.forget("1234")
    marks.forget("1234")
    assert not list(Path(marks.folder).glob("1234*"))


def test_what_one_preparation_made_is_known_to_the_next_of_its_folder(tmp_path: Path) -> None:
    marks = Marks(str(tmp_path))
    Path(marks.folder).mkdir()
    (tmp_path / "images").mkdir()
    marks.write("1234", mark_of(tmp_path, "images", "gone"))
    assert marks.made_for("/d") == {str(tmp_path): {"images"}}
    assert marks.made_for("/elsewhere") == {}


def test_new_and_touched_things_are_seen(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "grown").mkdir()
    before = contents((str(tmp_path),))
    (tmp_path / "new").write_text("")
    (tmp_path / ".hidden").write_text("")
    (tmp_path / "grown" / "more").write_text("")
    assert changes(before, contents((str(tmp_path),))) == {str(tmp_path): {"new", "grown"}}
    assert contents((str(tmp_path / "nowhere"),)) == {str(tmp_path / "nowhere"): {}}
