"""Builds without a measurement and ways of building: what contradicts them, and what they are called."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import builders
import pytest

from benchwright.core.errors import InvalidInput
from benchwright.core.model import Model
from benchwright.core.status import Status
from benchwright.kinds.models.benchmarks import variant_name
from benchwright.kinds.models.build_options import as_built
from benchwright.kinds.models.kind import OF_COMPILERS, OF_EXPORTS, imports_of
from benchwright.kinds.registry import kind_of
from benchwright.kinds.runtime_names import known_runtime
from benchwright.record import record_launch
from benchwright.runner.requests import order_of

BUILT = {"built": {"folder": "/b/k", "onnx": "/b/k/model.onnx", "bytes": 2048, "cached": False}}


def refused(values: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as caught:
        order_of(values, values, targets=["a.py"])
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"build_only": True, "export_only": True}, "--build-only has no meaning"),
        ({"build_only": True, "runtimes": ("torch-eager",)}, "torch-eager runs the module itself"),
        ({"build_only": True, "runtimes": ("torch-compiled",)}, "torch-compile runs the module itself"),
        ({"export_only": True, "runtimes": ("openvino",)}, "openvino has no part in it"),
        ({"export_only": True, "precisions": ("fp32,int8-dynamic",)}, "int8-dynamic comes after the export"),
        ({"build_only": True, "repeat": "6"}, "leave out --repeat"),
        ({"build_only": True, "lean_cache": True}, "leave out --lean-cache"),
        ({"build_only": True, "profile": True}, "leave out --profile"),
        ({"export_only": True, "stop": "1s"}, "leave out --stop"),
        ({"sequence_file": "/no/such.py", "runtimes": ("ort",)}, "/no/such.py: No such file"),
    ],
)
def test_what_contradicts_a_build_without_a_measurement_is_refused(values: dict[str, Any], said: str) -> None:
    assert said in refused(values)


def test_a_sequence_for_runtimes_that_build_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "seq.py").write_text("SEQUENCE = [print]\n")
    assert "has no effect" in refused({"sequence_file": str(tmp_path / "seq.py")})
    order = order_of({"sequence_file": str(tmp_path / "seq.py"), "runtimes": ("torch-eager,ort",)}, ())
    assert order.options.sequence_digest is not None
    order = order_of({"sequence_file": str(tmp_path / "seq.py")}, (), targets=["model.onnx"])  # built for onnxruntime
    assert order.options.sequence_digest is not None


def test_another_way_of_building_is_another_benchmark_where_it_has_an_effect() -> None:
    def name(runtime: str) -> str:
        made = Model(runtime=runtime, python="py", cwd="/", identity="ab", onnx_opset=17, sequence_file="/x/seq.py")
        return variant_name(as_built(made), {})

    assert name("onnxruntime") == "@onnxruntime,opset17,seq.py"
    assert name("aot-inductor") == "@aot-inductor,seq.py"
    assert name("torch-eager") == "@torch-eager"


def test_a_build_that_was_made_is_a_success_and_one_that_was_not_is_none() -> None:
    work = Model(runtime="onnxruntime", python="py", cwd="/", script="/a.py", identity="ab", stops_after="build")
    benchmark = builders.benchmark("a", workload=work, loop="latency")
    job = builders.job(id="a", benchmark="a")
    start, end = {"event": "start", "t": 0, "pid": 1}, {"event": "end", "t": 9, "exit_code": 0, "duration_s": 1.0}
    built = {"event": "built", "t": 1, **BUILT["built"]}
    done = record_launch([start, built, end], job, benchmark, kind_of)
    assert done.status is Status.OK
    assert done.facts["built"]["folder"] == "/b/k"
    assert record_launch([start, end], job, benchmark, kind_of).status is Status.FAILED


def test_what_an_export_imports_is_ready_before_its_process_is_forked() -> None:
    assert [
        known_runtime(name).through_onnx for name in ("onnxruntime", "openvino", "torch-eager", "of-a-plug-in")
    ] == [*(True, True, False, False)]
    assert all(find_spec(name) for name in OF_EXPORTS)


@pytest.mark.parametrize("runtime", ["torch-compile", "torch-compile-max-autotune", "aot-inductor"])
def test_the_compiler_is_ready_before_a_process_is_forked_that_runs_no_script(runtime: str) -> None:
    def model(**given: str) -> Model:
        return Model(**({"runtime": runtime, "python": "py", "cwd": "/", "identity": "ab"} | given))

    assert set(OF_COMPILERS) <= set(imports_of(model(zoo="timm:resnet18"))) & set(imports_of(model(file="/a.pt2")))
    assert imports_of(model(script="/a.py")) == ("torch",)  # it may set what the compiler reads when it is imported
    assert imports_of(model(zoo="timm:resnet18", runtime="torch-eager"))[-1] == "benchmodels.zoo.zoo_loader"
    assert all(find_spec(name) for name in OF_COMPILERS)
