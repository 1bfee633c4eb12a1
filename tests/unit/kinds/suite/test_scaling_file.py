"""Scaling files, in both formats."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.core.system import Observation, Scaling
from benchwright.kinds.suite.batch_sizes import read_scaling

MIB = 1 << 20
REAL = Path(__file__).parents[5] / "shared" / "compat" / "milabench" / "config"


def read(folder: Path, text: str) -> dict[str, Scaling]:
    path = folder / "scaling.yaml"
    path.write_text(text)
    return read_scaling(str(path))


def test_the_older_format_gives_memory_by_batch_size(tmp_path: Path) -> None:
    found = read(tmp_path, "version: 1.0\nb:\n  arg: --bs\n  optimized: 12\n  tags: [x]\n  model: {8: 200 MiB, 4: 1Go}")
    seen = (Observation(batch_size=4, memory_bytes=10**9), Observation(batch_size=8, memory_bytes=200 * MIB))
    assert found == {"b": Scaling(observations=seen, arg="--bs", optimized=12)}


def test_the_newer_format_gives_observations(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        version: 2.0
        b:
          observations:
          - {batch_size: 8, cpu: 4, memory: 100 MiB, perf: 1.5, time: 1744}
          - {batch_size: 16, memory: null}
          - {batch_size: 32, torchmem: 300 MiB, torch: 2.9, backend: cuda}
        """,
    )
    assert found["b"].observations == (
        Observation(batch_size=8, memory_bytes=100 * MIB, perf=1.5, cpu=4, time=1744.0),
        Observation(batch_size=16, memory_bytes=None),
        Observation(batch_size=32, memory_bytes=300 * MIB),
    )


def test_a_benchmark_of_which_nothing_is_known_is_there(tmp_path: Path) -> None:
    assert read(tmp_path, "a: {}\nb:\n") == {"a": Scaling(), "b": Scaling()}


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("[1]", 1, 1, "a scaling file is a list, not a map"),
        ("a: 3", 1, 4, "'a' is 3, not a map"),
        ("a: {modle: {}}", 1, 5, "did you mean 'model'?"),
        ("a: {model: {x: 3 MiB}}", 1, 13, "'x' is not a batch size"),
        ("a: {model: {0: 3 MiB}}", 1, 13, "'0' is not a batch size"),
        ("a: {model: {1: much}}", 1, 16, "null if it did not fit"),
        ("a: {model: {1: All}}", 1, 16, "not an amount of memory"),
        ("a: {optimized: many}", 1, 16, "not a whole number"),
        ("a:\n  observations:\n  - {memory: 3 MiB}", 3, 5, "without a batch_size"),
        ("a: {observations: [{batch_size: 1, perv: 3}]}", 1, 36, "did you mean 'perf'?"),
        ("a: {observations: [{batch_size: 1, perf: fast}]}", 1, 42, "not a number"),
        ("version: 9", 1, 10, "version 9 is not known"),
    ],
)
def test_what_is_wrong_is_pointed_at(tmp_path: Path, text: str, line: int, column: int, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


keys = st.sampled_from("version arg model observations optimized tags batch_size memory perf a".split()) | st.integers(
    0, 9
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["3 MiB", "x", "All"])
values: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(keys, values, max_size=4))
def test_any_file_is_read_or_refused(tmp_path: Path, body: dict[Any, Any]) -> None:
    with suppress(InvalidInput):
        assert all(isinstance(scaling, Scaling) for scaling in read(tmp_path, yaml.safe_dump(body)).values())


@pytest.mark.skipif(not REAL.is_dir(), reason="milabench's own files are not beside this checkout")
@pytest.mark.parametrize(
    ("name", "count", "benchmark", "observations"),
    [
        ("scaling/default.yaml", 62, "bert-fp16", 11),
        ("scaling/L40S.yaml", 32, "bert-fp16", 13),
        ("examples/scaling.yaml", 1, "benchio", 3),
    ],
)
def test_the_real_files_are_read(name: str, count: int, benchmark: str, observations: int) -> None:
    found = read_scaling(str(REAL / name))
    assert len(found) == count
    assert len(found[benchmark].observations) == observations
