"""The profiler of a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from specifications import read, spec_of

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.model import Model
from benchwright.kinds.registry import kind_named
from benchwright.kinds.spec.profile import declined
from benchwright.kinds.spec.spec_test import SpecTest
from benchwright.options.table import Options

SHIPPED = Path(__file__).parents[4] / "specifications" / "models" / "onnx" / "mlp"


def asking(tmp_path: Path, profiler: object) -> SpecTest:
    (benchmark,) = read(tmp_path, {"identifier": "x", "command": "true", "profiler": profiler})
    return spec_of(benchmark)


@pytest.mark.parametrize(
    ("profiler", "said"),
    [
        ({"enabled": True}, "asks for a profiler"),
        ({"enabled": "True", "profiler": "simpleperf", "types": ["cpu"]}, "adb shell simpleperf"),
        ({"enabled": True, "profiler": "xctrace"}, "iOS devices are not measured"),
        ({"enabled": True, "profiler": "vtune"}, "the profiler 'vtune', which is not run"),
    ],
)
def test_a_profiler_of_programs_is_declined_by_name(tmp_path: Path, profiler: object, said: str) -> None:
    assert said in (declined(asking(tmp_path, profiler)) or "")


@pytest.mark.parametrize("profiler", [{}, {"enabled": False, "profiler": "simpleperf"}, {"profiler": "simpleperf"}])
def test_one_that_is_not_enabled_is_no_remark(tmp_path: Path, profiler: object) -> None:
    assert declined(asking(tmp_path, profiler)) is None


def test_one_that_is_no_map_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="profiler"):
        asking(tmp_path, True)


def test_a_model_on_our_runtimes_has_its_operators_timed_beside(tmp_path: Path) -> None:
    (tmp_path / "mlp.onnx").write_bytes((SHIPPED / "mlp.onnx").read_bytes())
    test = {"identifier": "x", "inputs": {"x": {"shapes": [[1, 8]], "type": "float"}}, "profiler": {"enabled": True}}
    files = {"model": {"filename": "mlp.onnx", "location": "mlp.onnx"}}
    read(tmp_path, test, files=files)
    how = Options(model_cache=str(tmp_path / "cache"), runtimes=("onnxruntime",))
    found: list[Benchmark] = kind_named("spec").read(str(tmp_path / "spec.json"), how)
    profiled = [b.workload.profile for b in found if isinstance(b.workload, Model)]
    assert profiled == [False, True]
