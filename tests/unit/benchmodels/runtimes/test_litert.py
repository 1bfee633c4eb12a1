"""TFLite files, on LiteRT and on OpenVINO: outputs as numpy computes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tflite_model import expected, write_tflite

from benchmodels.files import loader
from benchmodels.files.loader import open_model_file
from benchmodels.runtimes.base import ArtifactFolder, CollectedSteps, RuntimeOptions, Session, Unsupported
from benchmodels.runtimes.registry import runtime_named


def loaded(folder: Path, runtime: str, shapes: dict[str, tuple[int, ...]]) -> Session:
    pytest.importorskip({"litert": "ai_edge_litert"}.get(runtime, runtime))
    model = write_tflite(folder / "tiny.tflite")
    (folder / "build").mkdir()
    runtime_named(runtime).build_file(str(model), str(folder / "build"), RuntimeOptions(), CollectedSteps(), shapes)
    return runtime_named(runtime).load(ArtifactFolder(str(folder / "build")), RuntimeOptions())


@pytest.mark.parametrize("runtime", ["litert", "openvino"])
@pytest.mark.parametrize("batch", [1, 3])
def test_outputs_are_those_of_numpy_also_for_another_batch(tmp_path: Path, runtime: str, batch: int) -> None:
    session = loaded(tmp_path, runtime, {"data": (batch, 8)})
    data = np.random.default_rng(1).standard_normal((batch, 8)).astype("float32")
    for scale in (1, 2):  # other inputs are other outputs
        prepared = session.prepare({"data": data * np.float32(scale)})
        outputs = [session.outputs(session.run(prepared)) for _ in range(3)]
        for each in outputs:  # calls do not change their inputs
            assert list(each) == ["prob"]
            assert np.allclose(each["prob"], expected(data * scale), atol=1e-6)
    stream = session.new_stream()
    found = stream.outputs(stream.run(stream.prepare({"data": data})))
    assert np.allclose(found["prob"], expected(data), atol=1e-6)
    session.close()


@pytest.mark.parametrize("with_litert", [True, False])
def test_a_file_says_what_it_takes_and_has_a_reference(
    tmp_path: Path, with_litert: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without LiteRT, OpenVINO reads it."""
    pytest.importorskip("ai_edge_litert" if with_litert else "openvino")
    monkeypatch.setattr(loader, "is_importable", lambda name: with_litert)
    opened = open_model_file(str(write_tflite(tmp_path / "tiny.tflite")))
    [data] = opened.inputs
    assert (data.name, list(data.shape or ()), data.dtype) == ("data", ["dim0", 8], "float32")
    arrays = {"data": np.ones((2, 8), dtype="float32")}
    reference = opened.reference(arrays)
    assert np.allclose(reference.outputs["prob"], expected(arrays["data"]), atol=1e-6)
    assert reference.varies is None


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    path = tmp_path / "tiny.tflite"
    path.write_bytes(write_tflite(path).read_bytes()[:100])
    with pytest.raises(Unsupported, match="is not a TFLite model"):
        open_model_file(str(path))


def test_models_of_torch_are_not_converted(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=r"litert runs \.tflite files"):
        runtime_named("tflite").build(None, str(tmp_path), RuntimeOptions(), CollectedSteps())  # type: ignore[arg-type]
