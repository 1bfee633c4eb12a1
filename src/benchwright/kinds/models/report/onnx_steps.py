"""How far a model came on its way through ONNX."""

from __future__ import annotations

from benchwright.kinds.models.build_options import builds_from_onnx
from benchwright.kinds.models.report.facts import step_outcome
from benchwright.kinds.models.report.rows import ModelRow


def onnx_steps(row: ModelRow) -> dict[str, object]:
    """Only for runtimes that build from ONNX; for others these steps mean something else."""
    runtime, result = row.model.runtime, row.result
    through = builds_from_onnx(runtime)
    return {
        "onnx_exported": step_outcome(result, "export") if through else None,
        "onnx_optimized": step_outcome(result, "optimise") if through else None,
        "onnx_converted": step_outcome(result, "convert") if runtime.startswith("onnxruntime") else None,
    }
