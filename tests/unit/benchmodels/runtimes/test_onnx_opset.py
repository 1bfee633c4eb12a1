"""The operator set that a user asks for is that of the exported file, or the export fails."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from benchmodels.measure.jobs import MeasureJob
from benchmodels.measure.runtime_options import options_of
from benchmodels.reports import Reports
from benchmodels.runtimes.base import Captured, Unsupported
from benchmodels.runtimes.parts.export import export_onnx
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import ModelSettings

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")


class Steps:
    def step(self, name: str) -> Any:
        return nullcontext()


def exported(folder: Path, opset: int | None) -> int:
    captured = Captured(torch.nn.Linear(3, 2).eval(), (torch.ones(1, 3),), {})
    made = export_onnx(captured, str(folder), options_of(ModelSettings(onnx_opset=opset)), Steps())
    return next(each.version for each in onnx.load(made.path).opset_import if each.domain == "")


def test_the_file_has_the_opset_that_was_asked_for(tmp_path: Path) -> None:
    assert exported(tmp_path, 19) == 19


def test_an_opset_that_the_exporter_cannot_make_is_a_failure_not_another_opset(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="opset 7"):
        exported(tmp_path, 7)


def test_builds_of_another_opset_are_other_builds() -> None:
    def parts(runtime: str, opset: int | None) -> dict[str, Any]:
        settings = ModelSettings(
            mode="measure", identity="x", weights_digest="w", content_digest="c", runtime=runtime, onnx_opset=opset
        )
        job = MeasureJob(settings, runtime_named(runtime), options_of(settings), Reports(lambda event: None))
        return job._key_parts("", [])

    assert parts("onnxruntime", 18) != parts("onnxruntime", None)
    assert parts("aot-inductor", 18) == parts("aot-inductor", None)
