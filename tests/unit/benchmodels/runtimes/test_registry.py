"""Runtimes are found by name or alias, those of installed plug-ins included."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmodels.runtimes.base import Captured, RuntimeOptions
from benchmodels.runtimes.registry import (
    BUILT_IN,
    FOR_FILES,
    UnknownRuntime,
    all_runtimes,
    known_runtimes,
    names_known_here,
    runtime_named,
)

PLUGIN = """
from benchmodels.runtimes.torch_eager import TorchEager
class Fancy(TorchEager):
    name = "fancy"
    aliases = ("fcy",)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a package that adds the runtime `fancy`, and one whose module cannot be imported."""
    (tmp_path / "fancy_runtime.py").write_text(PLUGIN)
    info = tmp_path / "fancy_runtime-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fancy-runtime\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text(
        "[benchmodels.runtimes]\nfancy = fancy_runtime:Fancy\nbroken = no_such_module:Broken\n"
        "onnxruntime = fancy_runtime:Fancy\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_unknown_runtime_is_told_with_the_nearest_known():
    with pytest.raises(UnknownRuntime, match=r"unknown runtime 'onxruntime'; did you mean 'onnxruntime'\?"):
        runtime_named("onxruntime")
    with pytest.raises(UnknownRuntime, match=r"known: torch-eager, torch-compile"):
        runtime_named("zzz")


def test_names_known_from_elsewhere_mean_ours():
    assert runtime_named("ort").name == "onnxruntime"
    assert runtime_named("torch-compiled").name == "torch-compile"
    assert {"torch-eager", "openvino", "aot-inductor"} <= set(known_runtimes())


def test_a_plug_in_is_found_by_name_and_alias(plugin):
    assert {"fancy", "broken"} <= set(known_runtimes())
    assert runtime_named("fancy").name == runtime_named("fcy").name == "fancy"
    assert names_known_here(["fcy", "ort", "nosuch"]) == {"fcy": "fancy", "ort": "onnxruntime", "nosuch": None}


def test_a_broken_plug_in_fails_only_when_it_is_used(plugin):
    assert "broken" not in [runtime.name for runtime in all_runtimes()]
    with pytest.raises(ModuleNotFoundError):
        runtime_named("broken")


def test_a_plug_in_cannot_replace_a_built_in_runtime(plugin):
    assert runtime_named("onnxruntime").packages[-1] == "onnxruntime"


def test_another_interpreter_says_which_names_it_knows(plugin):
    command = [sys.executable, "-m", "benchmodels.runtimes.registry", "fcy", "nosuch"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=plugin, env={"PYTHONPATH": str(plugin)})
    assert json.loads(done.stdout)["names"] == {"fcy": "fancy", "nosuch": None}


def test_the_example_in_the_documentation_is_a_runtime():
    torch = pytest.importorskip("torch")
    page = (Path(__file__).parents[4] / "docs" / "extend" / "runtime.md").read_text()
    names: dict[str, Any] = {"__name__": "doubling_runtime"}
    exec(page.partition("```python\n")[2].partition("```")[0], names)
    runtime, x = names["Doubling"](), torch.ones(2, 3)
    model = Captured(torch.nn.Identity(), (x,), {})
    assert runtime.unavailable(RuntimeOptions()) is None
    session = runtime.load(model, RuntimeOptions())
    outputs = session.outputs(session.run(session.prepare(model)))
    assert [array.tolist() for array in outputs.values()] == [(2 * x).tolist()]
    session.close()


def test_every_built_in_runtime_says_what_the_doctor_and_reports_ask():
    for runtime in all_runtimes():
        assert runtime.packages, runtime.name
        assert runtime.through_onnx == ("onnxscript" in getattr(runtime, "build_packages", ())), runtime.name


@pytest.mark.parametrize(
    ("name", "device", "why"),
    [
        ("torch-compile-cuda-graphs", "cpu", "CUDA graphs need a CUDA device, not cpu"),
        ("torch-tensorrt", "cpu", "TensorRT needs a CUDA device, not cpu"),
        ("torch-tensorrt", "cuda", "pip install torch-tensorrt"),
    ],
)
def test_what_a_runtime_for_gpus_lacks_is_told(name: str, device: str, why: str) -> None:
    assert why in (runtime_named(name).unavailable(RuntimeOptions(device=device)) or "")


def test_runtimes_say_what_benchwright_has_to_know_of_them() -> None:
    def those_with(attribute: str) -> set[str]:
        return {name for name in BUILT_IN if getattr(runtime_named(name), attribute)}

    compiling = {"torch-compile", "torch-compile-max-autotune", "torch-compile-cuda-graphs"}
    assert those_with("forks") == {"torch-eager", *compiling}
    assert those_with("inductor") == {"aot-inductor", *compiling}
    assert those_with("applies_autocast") == {"torch-eager", "torch-tensorrt", *compiling}
    assert those_with("calls_methods") == {"torch-eager"}
    assert those_with("converts_onnx") == {"onnxruntime", "onnxruntime-tensorrt"}
    assert all(ending in runtime_named(name).accepts for ending, name in FOR_FILES.items())
