"""From found models to benchmarks."""

from __future__ import annotations

from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.model import NEVER_CALLED, FoundModel, Model, ModelScript, ScriptDiscovery
from benchwright.core.status import Reason
from benchwright.kinds.models.benchmarks import benchmarks_of, with_idle_parameters_noted
from benchwright.options.table import Options


def asked(parameters: dict[str, str] | None = None, select: tuple[str, ...] = ()) -> Benchmark:
    workload = ModelScript(path="/x/bert.py", args=("--k", "1"), cwd="/x", python="py", select=select)
    point = parameters or {}
    name = "bert.py" + (f"[{','.join(f'{k}={v}' for k, v in point.items())}]" if point else "")
    return Benchmark(name=name, workload=workload, source="bert.py", parameters=point)


def model(identity: str = "8c1f02aa00000000", cls: str = "Bert", **more: Any) -> FoundModel:
    return FoundModel(identity=identity, class_=cls, weights="w1", place={"file": "/x/bert.py", "line": 21}, **more)


def found(*models: FoundModel, **more: Any) -> ScriptDiscovery:
    return ScriptDiscovery(script="bert.py", models=models, **more)


def test_one_for_each_runtime_device_and_precision() -> None:
    options = Options(
        runtimes=("torch-eager", "openvino"), devices=("cpu", "cuda:1"), precisions=("fp32", "bf16"), base="/base"
    )
    made = benchmarks_of(asked(), found(model()), options)
    assert [b.name for b in made][:3] == [
        "bert.py::Bert@torch-eager",
        "bert.py::Bert@openvino",
        "bert.py::Bert@torch-eager,bf16",
    ]
    assert len(made) == 8
    last = made[-1]
    assert isinstance(last.workload, Model)
    assert (last.workload.runtime, last.workload.device, last.workload.precision) == ("openvino", "cuda:1", "bf16")
    assert last.placement.needs_devices == 2
    assert last.workload.args == ("--k", "1")
    assert last.workload.place == "bert.py:21"
    assert last.workload.weights == "w1"


def test_a_model_of_a_script_is_built_as_asked_where_its_runtime_builds() -> None:
    options = Options(runtimes=("torch-eager", "onnxruntime"), onnx_opset=17, sequence_file="/x/seq.py")
    eager, built = benchmarks_of(asked(), found(model()), options)
    assert eager.name == "bert.py::Bert@torch-eager"
    assert built.name == "bert.py::Bert@onnxruntime,opset17,seq.py"
    assert isinstance(built.workload, Model)
    assert (built.workload.onnx_opset, built.workload.sequence_file) == (17, "/x/seq.py")


def test_a_point_of_a_sweep_stays_in_the_name() -> None:
    (made,) = benchmarks_of(asked({"batch_size": "8"}), found(model()), Options())
    assert made.name == "bert.py::Bert[batch_size=8]@torch-eager"
    assert made.parameters == {"batch_size": "8"}


def test_models_of_one_class_are_told_apart_by_their_identity() -> None:
    made = benchmarks_of(asked(), found(model("aaaa1"), model("bbbb2"), model("cccc3", "Other")), Options())
    assert [b.name for b in made] == [
        "bert.py::Bert-aaaa@torch-eager",
        "bert.py::Bert-bbbb@torch-eager",
        "bert.py::Other@torch-eager",
    ]


def test_what_is_not_measured_stays_with_its_reason() -> None:
    never = model("dddd4", "Unused", mode=NEVER_CALLED, reason="it is built and never called")
    ran, listed = benchmarks_of(asked(), found(model(), never), Options(runtimes=("torch-eager",)))
    assert ran.withheld is None
    assert listed.withheld == "it is built and never called; call it in the script, or time all of it with --as command"
    assert listed.name == "bert.py::Unused"


def test_a_script_that_failed_before_it_called_a_model_says_how() -> None:
    trouble = found(trouble="OSError: no such model", reason=Reason.CRASHED)
    (made,) = benchmarks_of(asked(), trouble, Options())
    assert made.name == "bert.py"
    assert isinstance(made.workload, ModelScript)
    assert made.workload.failure == (Reason.CRASHED, "OSError: no such model (before it called a model)")
    assert not made.is_open


@pytest.mark.parametrize(
    ("frameworks", "said"),
    [
        ((), "it calls no model of torch; time all of it with --as command"),
        (("sklearn",), "it uses sklearn, and only models of torch are looked for; time all of it with --as command, "),
    ],
)
def test_a_script_without_a_model_says_what_works_instead(frameworks: tuple[str, ...], said: str) -> None:
    (made,) = benchmarks_of(asked(), found(frameworks=frameworks), Options())
    assert made.withheld is not None
    assert made.withheld.startswith(said)
    assert not made.is_open


def test_a_swept_parameter_that_changes_nothing_is_noted() -> None:
    points = [asked({"bach": value}) for value in ("1", "8")]
    same = {b.name: found(model()) for b in points}
    assert all("--param bach" in b.notes[0] for b in with_idle_parameters_noted(points, same))
    other = {points[0].name: found(model()), points[1].name: found(model("00aa"))}
    none = {b.name: found() for b in points}
    for told in (other, none):
        assert with_idle_parameters_noted(points, told) == points


@pytest.mark.parametrize("word", ["Bert", "8c1f", "8c1f02aa00000000"])
def test_a_model_is_selected_by_class_or_identity(word: str) -> None:
    made = benchmarks_of(asked(select=(word,)), found(model(), model("ffff", "Other")), Options())
    assert [b.name for b in made] == ["bert.py::Bert@torch-eager"]


def test_an_unknown_name_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidInput, match=r"no model 'Brt' in it; it has Bert \(8c1f02aa\).*did you mean"):
        benchmarks_of(asked(select=("Brt",)), found(model()), Options())


def test_labels_of_the_script_stay_and_those_of_the_user_win() -> None:
    (made,) = benchmarks_of(asked(), found(model(), labels={"author": "google"}), Options())
    assert made.labels == {"author": "google"}


def test_a_profile_is_a_benchmark_of_its_own() -> None:
    plain, profile = benchmarks_of(asked(), found(model()), Options(profile=True))
    assert isinstance(plain.workload, Model)
    assert isinstance(profile.workload, Model)
    assert (plain.workload.profile, profile.workload.profile) == (False, True)
    assert profile.name == f"{plain.name} profile"


@pytest.mark.parametrize(
    ("runtime", "precision", "said"),
    [
        ("torch-eager", "fp32", "measured under autocast bfloat16, as the script calls it"),
        ("onnxruntime", "fp32", "under autocast bfloat16, which onnxruntime does not apply; use --precision bf16"),
        ("torch-eager", "fp16", "measured in fp16 as asked, not under autocast bfloat16"),
    ],
)
def test_a_call_in_autocast_is_told_with_what_the_runtime_does(runtime: str, precision: str, said: str) -> None:
    options = {"runtimes": (runtime,), "precisions": (precision,)}
    (made,) = benchmarks_of(asked(), found(model(wrappers=("DataParallel", "autocast bfloat16"))), Options(**options))
    assert any(said in note for note in made.notes)


def test_a_failure_of_the_script_after_its_models_is_noted() -> None:
    (made,) = benchmarks_of(asked(), found(model(other_shapes=3), trouble="ValueError: no"), Options())
    assert any("failed after this model was found: ValueError: no" in note for note in made.notes)
    assert any("3 other shapes" in note for note in made.notes)
    never = model("dddd4", "Unused", mode=NEVER_CALLED, reason="it was not called")
    _, made = benchmarks_of(asked(), found(model(), never, trouble="EOFError: no input"), Options())
    assert made.withheld == "the script failed before calling it: EOFError: no input"


def test_a_script_that_failed_before_it_called_any_of_its_models_failed() -> None:
    """Not "never called", which would hide the script's own exception, and would be no failure."""
    never = model("dddd4", "Unused", mode=NEVER_CALLED, reason="it was not called")
    (made,) = benchmarks_of(asked(), found(never, trouble="KeyError: missing"), Options())
    assert isinstance(made.workload, ModelScript)
    assert made.workload.failure == (Reason.CRASHED, "KeyError: missing (before it called a model)")


@pytest.mark.parametrize(
    ("called_on", "device", "gpus"),
    [("cuda:0", "cuda", 1), ("cuda:2", "cuda:2", 3), ("cpu", "cpu", 0), (None, "cpu", 0)],
)
def test_a_model_is_measured_where_its_script_calls_it(called_on: str | None, device: str, gpus: int) -> None:
    (made,) = benchmarks_of(asked(), found(model(device=called_on)), Options())
    assert isinstance(made.workload, Model)
    assert (made.workload.device, made.placement.needs_devices, made.notes) == (device, gpus, ())
    assert made.name == "bert.py::Bert@torch-eager" + (f",{device}" if device != "cpu" else "")
    (asked_for,) = benchmarks_of(asked(), found(model(device=called_on)), Options(devices=("cuda:1",)))
    assert isinstance(asked_for.workload, Model)
    assert asked_for.workload.device == "cuda:1"


def test_the_process_of_a_model_sees_every_gpu_that_its_script_uses() -> None:
    models = (
        model("aaaa1", "One", device="cuda:0"),
        model("bbbb2", "Two", device="cuda:1"),
        model("cccc3", device="cpu"),
    )
    assert [b.placement.needs_devices for b in benchmarks_of(asked(), found(*models), Options())] == [2, 2, 0]
    (sharded,) = benchmarks_of(asked(), found(model(device="cuda:0", other_devices=("cuda:3", "cpu"))), Options())
    assert sharded.placement.needs_devices == 4
    assert sharded.notes == (
        "the script keeps parts of it on cuda:0 and cuda:3 and cpu, but it is measured on cuda alone",
    )


def test_a_device_that_models_cannot_be_measured_on_is_told() -> None:
    (made,) = benchmarks_of(asked(), found(model(device="xpu:0")), Options())
    assert made.notes == (
        "the script calls it on xpu, but it is measured on cpu; models cannot be measured on xpu yet",
    )


def test_a_model_that_is_measured_on_another_device_than_its_script_uses_is_said_to_be() -> None:
    (made,) = benchmarks_of(asked(), found(model(device="cuda:0")), Options(devices=("cpu",)))
    assert made.placement.needs_devices == 0
    assert made.notes == ("the script calls it on cuda, but it is measured on cpu; use --device cuda to match",)
    (made,) = benchmarks_of(asked(), found(model(device="cpu")), Options())
    assert made.notes == ()


def test_a_model_that_is_set_to_eval_is_said_to_be() -> None:
    trained = model(in_training=True, mode_dependent=("BatchNorm2d", "Dropout"))
    (made,) = benchmarks_of(asked(), found(trained), Options())
    assert isinstance(made.workload, Model)
    assert made.workload.set_to_eval
    said = "set to eval() to be measured: the script calls it in training mode"
    assert made.notes == (f"{said}; its BatchNorm2d and Dropout behave differently in training",)
    (plain,) = benchmarks_of(asked(), found(model(in_training=True)), Options())
    assert plain.notes == (said,)
    (evaluated,) = benchmarks_of(asked(), found(model()), Options())
    assert (evaluated.notes, evaluated.workload.set_to_eval) == ((), False)  # type: ignore[union-attr]
