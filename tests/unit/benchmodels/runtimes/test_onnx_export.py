"""Exports to ONNX: the operator set that a user asks for, without gradients, with names for all outputs."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from measured_models import Models
from onnx_export import read_operators_once

from benchmodels.measure.jobs import MeasureJob
from benchmodels.reports import Reports
from benchmodels.runtimes.base import ArtifactFolder, Captured, RuntimeOptions, Unsupported
from benchmodels.runtimes.parts.artifact import read_artifact
from benchmodels.runtimes.parts.export import export_onnx, exporting
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import ModelSettings

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module", autouse=True)
def quick_exports() -> None:
    read_operators_once()


class Steps:
    def step(self, name: str) -> Any:
        return nullcontext()


def exported(folder: Path, opset: int | None) -> int:
    captured = Captured(torch.nn.Linear(3, 2).eval(), (torch.ones(1, 3),), {})
    made = export_onnx(captured, str(folder), RuntimeOptions(onnx_opset=opset), Steps())
    return next(each.version for each in onnx.load(made.path).opset_import if each.domain == "")


def test_the_file_has_the_opset_that_was_asked_for(tmp_path: Path) -> None:
    assert exported(tmp_path, 19) == 19


def test_an_opset_that_the_exporter_cannot_make_is_a_failure_not_another_opset(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="opset 7"):
        exported(tmp_path, 7)


def test_builds_of_another_opset_are_other_builds() -> None:
    def parts(runtime: str, opset: int | None) -> dict[str, Any]:
        settings = ModelSettings(
            mode="measure",
            identity="x",
            weights_digest="w",
            content_digest="c",
            runtime=runtime,
            options=RuntimeOptions(onnx_opset=opset),
        )
        job = MeasureJob(settings, runtime_named(runtime), Reports(lambda event: None))
        return job._key_parts("", [])

    assert parts("onnxruntime", 18) != parts("onnxruntime", None)
    assert parts("aot-inductor", 18) == parts("aot-inductor", None)


def test_models_are_exported_without_gradients() -> None:
    """With them torch chooses another kernel of attention while it traces than when it looks again, and views of it fail."""
    for outside in (torch.enable_grad(), torch.inference_mode()):
        with outside, exporting():
            assert not torch.is_grad_enabled()
            assert not torch.is_inference_mode_enabled()


ONLY_STRICT = """
import torch
import torch._dynamo

class OnlyStrict(torch.nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting() and not torch.compiler.is_dynamo_compiling():
            raise ValueError("only the strict export can trace it")
        return {"doubled": 2 * x}

OnlyStrict()(torch.arange(3.0))
"""


@pytest.mark.long
def test_a_model_that_only_the_strict_export_can_trace_is_exported_with_names_for_its_outputs(tmp_path: Path) -> None:
    """Though the compiler was imported under the hook, which kept it out of what is ours: such as the module it now traces."""
    models = Models(tmp_path)
    path = models.script(ONLY_STRICT)
    told = models.run(path, identity=models.identity(path), runtime="onnxruntime")
    assert told.all("failure") == [], told.errors
    check = told.one("check")
    assert (check["ok"], check["claimed"]) == (True, True)
    (folder,) = (path for path in models.builds.iterdir() if path.is_dir())
    assert list(read_artifact(ArtifactFolder(str(folder))).outputs) == ["doubled"]
