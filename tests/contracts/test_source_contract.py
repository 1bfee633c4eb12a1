"""What every source must do with any target."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.kinds.base import ENTRY_POINT_GROUP, Source, SourceOptions
from benchwright.kinds.registry import BUILT_IN, source_for, source_named

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
EXAMPLES = {
    "suite": ("a.yaml", "one:\n  definition: .\n  plan: {method: njobs, n: 2}\n  argv: {--lr: 0.1, --fast: true}\n"),
    "tasks": (
        "a.cfg",
        "[one]\npatterns = ['x (\\d+)']\nmetrics = ['x']\ncompute_method = ['last']\ncommand_to_execute = true\nnum_gpus = 0\n",
    ),
    "script": ("loop.py", "from benchprobe import iterate\n"),
    "model": ("net.onnx", "any bytes: only a runtime knows"),
}


@pytest.fixture(params=BUILT_IN)
def source(request: pytest.FixtureRequest) -> Source:
    return source_named(request.param)


def test_the_registry_and_the_entry_points_agree() -> None:
    assert PROJECT["entry-points"][ENTRY_POINT_GROUP] == BUILT_IN


def test_its_own_kind_is_recognised_and_read_without_writing(source: Source, tmp_path: Path) -> None:
    name, text = EXAMPLES[source.name]
    path = tmp_path / name
    path.write_text(text)
    assert source.recognises(str(path))
    found = source_for(str(path))
    assert found is not None
    assert found.name == source.name
    benchmarks = source.read(str(path), SourceOptions())
    assert len(benchmarks) == 1
    assert msgspec.json.decode(msgspec.json.encode(benchmarks[0]), type=Benchmark) == benchmarks[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


def test_what_is_not_there_is_not_recognised(source: Source, tmp_path: Path) -> None:
    for target in ("", "absent.cfg", "absent.py", str(tmp_path), "a\nb"):
        assert not source.recognises(target)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=300), st.text(max_size=300).map(lambda t: t.encode("utf-8", "replace"))))
def test_any_content_is_benchmarks_or_a_placed_error(source: Source, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / EXAMPLES[source.name][0]
    path.write_bytes(content)
    try:
        found = source.read(str(path), SourceOptions())
    except InvalidInput as error:
        found, said = [], str(error)
    else:
        said = str(path)
    assert said.startswith(str(path))
    assert all(isinstance(b, Benchmark) for b in found)
