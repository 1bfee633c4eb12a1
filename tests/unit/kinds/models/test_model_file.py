"""Model files as targets: what they are known by, and what is refused before anything runs."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from onnx_models import looked_up

from benchwright.core.errors import InvalidInput
from benchwright.core.model import Model
from benchwright.kinds.models.model_file import ModelFileKind, identity_of_file, trusted_code
from benchwright.options.table import Options
from benchwright.runner.requests import options_of


def read(path: Path, **options: Any) -> Any:
    (made,) = ModelFileKind().read(str(path), Options(**options))
    return made.workload


def test_weights_are_part_of_the_identity_whatever_their_file_is_called(tmp_path: Path) -> None:
    onnx: Any = pytest.importorskip("onnx")
    path = tmp_path / "big.onnx"
    model = onnx.load(str(looked_up(tmp_path)))
    onnx.save(model, str(path), save_as_external_data=True, location="w.weights", size_threshold=0)
    before = identity_of_file(path)
    (tmp_path / "big.bin").write_bytes(b"of big.xml, which lies beside it")
    assert identity_of_file(path) == before
    with (tmp_path / "w.weights").open("r+b") as file:
        file.write(b"\1\2\3\4")
    assert identity_of_file(path) != before
    (tmp_path / "w.weights").unlink()
    assert read(path).identity != before  # that it is missing is told when it is measured


def test_what_is_for_scripts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"model")
    assert read(tmp_path / "a.onnx").file == str(tmp_path / "a.onnx")
    with pytest.raises(InvalidInput, match=r"--param is for scripts.*--shape"):
        read(tmp_path / "a.onnx", params=("k=1",))


def test_what_changes_an_export_is_refused_for_a_file_that_is_not_exported(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").write_bytes(b"model")
    with pytest.raises(InvalidInput, match="not exported, so it keeps its operator set; leave out --onnx-opset"):
        read(tmp_path / "a.onnx", onnx_opset=17)
    assert read(tmp_path / "a.onnx", sequence_file="/x/seq.py").build_variant == ("seq.py",)
    (tmp_path / "a.tflite").write_bytes(b"    TFL3")
    with pytest.raises(InvalidInput, match=r"a \.tflite file is neither; leave out --sequence-file"):
        read(tmp_path / "a.tflite", sequence_file="/x/seq.py")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a/data.pkl", "a/code/__torch__/x.py"], "is a TorchScript archive"),
        (["a/data.pkl", "a/data/0"], "is a file of torch.save"),
        (["a/data/aotinductor/model/x.so"], "is a compiled package of AOTInductor"),
        (["a/models/model.json", "a/data/weights/weight_0"], None),
        (["serialized_exported_program.json", "version"], None),
    ],
)
def test_other_archives_of_torch_are_told_apart(tmp_path: Path, names: list[str], says: str | None) -> None:
    path = tmp_path / "a.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "{}")
    if says is None:
        assert read(path).file == str(path)
        return
    with pytest.raises(InvalidInput, match=says):
        read(path)


def test_two_shapes_of_one_input_are_refused() -> None:
    assert options_of({"shapes": ("a=1x2", "b=3")}).shapes == {"a": (1, 2), "b": (3,)}
    with pytest.raises(InvalidInput, match="two shapes for 'a'"):
        options_of({"shapes": ("a=1x2", "a=2x2")})


def test_runtimes_go_by_their_aliases_too() -> None:
    assert options_of({"runtimes": ("ort,eager", "onnxruntime", "trt")}).runtimes == (
        "onnxruntime",
        "torch-eager",
        "onnxruntime-tensorrt",
    )
    with pytest.raises(InvalidInput, match="unknown runtime 'onnx'; did you mean 'onnxruntime'"):
        options_of({"runtimes": ("onnx",), "python": "/nonexistent/python"})
    with pytest.raises(InvalidInput, match="unknown runtime 'zzz'; use one of torch-eager"):
        options_of({"runtimes": ("zzz",), "python": "/nonexistent/python"})
    with pytest.raises(InvalidInput, match="unknown runtime 'remote'; name the other machine with --on ssh:HOST"):
        options_of({"runtimes": ("remote",), "python": "/nonexistent/python"})  # MLAgility's --backend


def test_a_runtime_of_the_package_beside_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["benchwright-runtimes[tvm]; extra == 'tvm'"])
    how = r"install it where models are measured: /nonexistent/python -m pip install 'benchwright-runtimes\[tvm\]'"
    with pytest.raises(InvalidInput, match=f"unknown runtime 'tvm'; {how}"):
        options_of({"runtimes": ("tvm",), "python": "/nonexistent/python"})
    with pytest.raises(InvalidInput, match="unknown runtime 'tv'; use one of torch-eager"):
        options_of({"runtimes": ("tv",), "python": "/nonexistent/python"})


def test_a_file_that_runs_code_is_refused_unless_it_is_trusted(tmp_path: Path) -> None:
    path = tmp_path / "a.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/models/model.json", '{"nodes": [{"target": "torch.hub.load", "inputs": []}]}')
    with pytest.raises(InvalidInput, match=r"would run its own code.*calls torch\.hub\.load.*with --trust"):
        read(path)
    (made,) = ModelFileKind().read(str(path), Options(trust=True))
    assert isinstance(made.workload, Model)
    assert made.workload.trust
    assert trusted_code([made]) == [f"{path}: {made.notes[0]}"]
    assert "as --trust allows: models/model.json calls torch.hub.load" in made.notes[0]
