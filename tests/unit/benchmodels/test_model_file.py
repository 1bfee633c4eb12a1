"""Model files: their inputs, made from shapes, their work and their reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_models import looked_up

from benchmodels.files.file_content import digest_of, files_of
from benchmodels.files.loader import open_model_file
from benchmodels.files.model_file import FileInput, described, made_inputs, resolved_shapes
from benchmodels.runtimes.base import Unsupported

onnx = pytest.importorskip("onnx")
IDS = FileInput("ids", ["batch", 6], "int64", below=11)


def test_a_free_dimension_must_be_given_and_an_example_shows_how() -> None:
    with pytest.raises(
        Unsupported, match=r"input ids \(batch×6 int64\) has free dimensions \(batch\); give --shape ids=1x6"
    ):
        resolved_shapes([IDS], {})
    assert resolved_shapes([IDS], {"ids": [3, 6]}) == {"ids": (3, 6)}


def test_all_that_is_missing_is_asked_for_at_once_with_the_sizes_that_are_known() -> None:
    mask, any_shape = FileInput("mask", ["batch", "k"], "float32"), FileInput("x", None, "float32")
    with pytest.raises(Unsupported, match=r"give --shape mask=3x1 --shape x=1x1$"):
        resolved_shapes([IDS, mask, any_shape], {"ids": [3, 6]})
    assert resolved_shapes([any_shape], {"x": [2, 3, 4]}) == {"x": (2, 3, 4)}


@pytest.mark.parametrize("shape", [[3, 7], [6], [3, 6, 1], [-1, 6]])
def test_a_shape_that_does_not_fit_is_refused(shape: list[int]) -> None:
    with pytest.raises(Unsupported, match="cannot have the shape"):
        resolved_shapes([IDS], {"ids": shape})


def test_a_shape_for_no_input_names_those_there_are() -> None:
    with pytest.raises(Unsupported, match=r"no input 'data'; the inputs are ids \(batch×6 int64\)"):
        resolved_shapes([IDS], {"data": [1]})


def test_inputs_are_not_all_zeros_and_whole_numbers_stay_below_their_table() -> None:
    inputs = [
        IDS,
        FileInput("x", [4, 5], "float32"),
        FileInput("kind", [4, 5], "int32"),
        FileInput("attention_mask", [4, 5], "int64"),
        FileInput("flag", [2], "bool"),
        FileInput("one", [], "int64"),
    ]
    shapes = {"ids": (100, 6), "x": (4, 5), "kind": (4, 5), "attention_mask": (4, 5), "flag": (2,), "one": ()}
    made = made_inputs(inputs, shapes, seed=0)
    assert made["ids"].min() >= 0
    assert made["ids"].max() == 10
    assert made["ids"].dtype == np.int64
    assert made["x"].std() > 0.5
    assert set(np.unique(made["kind"])) == {0, 1}
    assert made["kind"].any(axis=-1).all()
    assert made["attention_mask"].all()
    assert made["flag"].dtype == np.bool_
    assert made["one"] == 1
    again = made_inputs(inputs, shapes, seed=0)
    assert all(np.array_equal(made[name], again[name]) for name in made)


def test_an_onnx_file_tells_its_inputs_its_work_and_its_outputs(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    opened = open_model_file(str(looked_up(tmp_path)))
    assert opened.inputs == [FileInput("ids", ["batch", 6], "int32", 11), FileInput("mask", [6, 4], "float32")]
    assert opened.title == "Tiny"
    assert opened.size() == (11 * 8 + 8 * 4, 4 * (11 * 8 + 8 * 4))
    arrays = made_inputs(opened.inputs, resolved_shapes(opened.inputs, {"ids": [3, 6]}), 0)
    assert opened.work(arrays).flops == 2 * 3 * 6 * 8 * 4
    reference = opened.reference(arrays)
    assert reference.label == "onnxruntime unoptimised float32"
    assert reference.outputs["y"].shape == (3, 6, 4)
    assert reference.varies is None


def saved(path: Path, shape: list[int] | None, *, kind: int | None = None, sequence: bool = False) -> str:
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    value = helper.make_tensor_value_info("x", kind or floats, shape)
    result = helper.make_tensor_value_info("y", kind or floats, shape)
    if sequence:
        kind_of_result = helper.make_sequence_type_proto(helper.make_tensor_type_proto(floats, None))
        result = helper.make_value_info("y", kind_of_result)
    node = helper.make_node("SplitToSequence" if sequence else "Identity", ["x"], ["y"])
    places = onnx.numpy_helper.from_array(np.arange(5), "places")
    onnx.save(helper.make_model(helper.make_graph([node], "g", [value], [result], [places])), str(path))
    return str(path)


def test_an_onnx_input_without_dimensions_is_no_scalar(tmp_path: Path) -> None:
    opened = open_model_file(saved(tmp_path / "any.onnx", None))
    assert opened.inputs == [FileInput("x", None, "float32")]
    assert open_model_file(saved(tmp_path / "scalar.onnx", [])).inputs == [FileInput("x", [], "float32")]
    assert open_model_file(saved(tmp_path / "minus.onnx", [-1, 4])).inputs == [FileInput("x", ["dim0", 4], "float32")]
    assert opened.size().parameters == 0  # places are no weights


def test_text_and_sequences_are_told_where_the_file_is_read(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="input x holds text"):
        open_model_file(saved(tmp_path / "text.onnx", [2], kind=onnx.TensorProto.STRING))
    with pytest.raises(Unsupported, match="output y is not a tensor but a sequence_type"):
        open_model_file(saved(tmp_path / "many.onnx", [2], sequence=True))


def test_what_is_no_model_is_told(tmp_path: Path) -> None:
    for name in ("bad.onnx", "bad.pt2", "bad.xml"):
        (tmp_path / name).write_text("not a model")
        with pytest.raises(Unsupported, match=r"is not? "):
            open_model_file(str(tmp_path / name))
    with pytest.raises(Unsupported, match="no such file"):
        open_model_file(str(tmp_path / "absent.onnx"))


def test_weights_in_a_file_of_their_own_belong_to_the_model(tmp_path: Path) -> None:
    model = onnx.load(str(looked_up(tmp_path, rows=1000)))
    onnx.save(model, str(tmp_path / "big.onnx"), save_as_external_data=True, location="big.weights", size_threshold=0)
    files = files_of(str(tmp_path / "big.onnx"))
    assert [Path(file).name for file in files] == ["big.onnx", "big.weights"]
    before = digest_of(files)
    with (tmp_path / "big.weights").open("r+b") as file:
        file.write(b"\1\2\3\4")
    assert digest_of(files) != before
    assert open_model_file(str(tmp_path / "big.onnx")).size().parameters == 1000 * 8 + 8 * 4


def test_an_openvino_file_tells_its_inputs_and_its_outputs(tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    from benchmodels.runtimes.openvino import openvino

    library = openvino()
    library.save_model(library.convert_model(str(looked_up(tmp_path))), tmp_path / "tiny.xml", compress_to_fp16=False)
    opened = open_model_file(str(tmp_path / "tiny.xml"))
    assert [(each.name, each.dtype) for each in opened.inputs] == [("ids", "int32"), ("mask", "float32")]
    assert not isinstance(opened.inputs[0].shape[0], int)
    arrays = made_inputs(opened.inputs, resolved_shapes(opened.inputs, {"ids": [3, 6]}), 0)
    assert opened.work(arrays).bytes_ == opened.size().bytes_ + sum(a.nbytes for a in arrays.values()) + 3 * 6 * 4 * 4
    reference = opened.reference(arrays)
    assert reference.label == "openvino CPU float32"
    (found,) = reference.outputs.values()
    expected = open_model_file(str(tmp_path / "tiny.onnx")).reference(arrays).outputs["y"]
    assert np.allclose(found, expected, atol=1e-5)
    assert [Path(file).name for file in files_of(str(tmp_path / "tiny.xml"))] == ["tiny.xml", "tiny.bin"]


@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's, about torch, when such a module is copied
def test_an_exported_program_is_called_with_the_inputs_saved_in_it(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")

    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(13, 4)
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, ids: Any, *, more: Any) -> Any:
            return {"y": self.drop(self.table(ids)) + more["x"]}

    args, kwargs = (torch.tensor([[1, 2, 12]]),), {"more": {"x": torch.ones(1, 3, 4)}}
    model = Pair().eval()
    torch.export.save(torch.export.export(model, args, kwargs), tmp_path / "pair.pt2")
    opened: Any = open_model_file(str(tmp_path / "pair.pt2"))
    ids, more = opened.inputs
    assert (ids.name, list(ids.shape), ids.dtype, ids.below) == ("ids", [1, 3], "int64", 13)
    assert (list(more.shape), more.dtype) == ([1, 3, 4], "float32")
    saved = opened.saved_inputs()
    captured = opened.captured(saved, "abc")
    assert torch.equal(captured.module.eval()(*captured.args, **captured.kwargs)["y"], model(*args, **kwargs)["y"])
    assert opened.reference(saved).label == "float64 eager"
    made = made_inputs(opened.inputs, resolved_shapes(opened.inputs, {}), 0)
    assert made["ids"].max() < 13
    assert opened.work(made).note is None


def test_numbers_that_numpy_has_not_are_made_and_buffers_are_no_parameters(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4)).bfloat16().eval()
    free = {0: torch.export.Dim("batch", min=2, max=16)}
    program = torch.export.export(model, (torch.ones(4, 8, dtype=torch.bfloat16),), dynamic_shapes=(free,))
    torch.export.save(program, tmp_path / "bf.pt2")
    opened: Any = open_model_file(str(tmp_path / "bf.pt2"))
    assert opened.size().parameters == 8 * 4 + 4 + 2 * 4
    (each,) = opened.inputs
    arrays = made_inputs(opened.inputs, resolved_shapes(opened.inputs, {each.name: [3, 8]}), 0)
    assert len(np.unique(arrays[each.name])) > 10  # not zeros and ones
    (given,) = opened.captured(arrays, "x").args
    assert (given.dtype, tuple(given.shape)) == (torch.bfloat16, (3, 8))
    assert described(opened, arrays, "x")["inputs"][0]["dtype"] == "bfloat16"
