"""A build sequence of the user: what it changes, what is told when it is wrong, and that a changed one is another build."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from benchmodels.build.builder import ModelBuilder, read_reference
from benchmodels.build.sequence_file import BadSequenceFile, digest_of_sequence, read_sequence
from benchmodels.measure.jobs import MeasureJob
from benchmodels.reports import Reports
from benchmodels.runtimes.base import ArtifactFolder, Captured, RuntimeOptions, Unsupported
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import ModelSettings


class Steps:
    def __init__(self) -> None:
        self.named: list[str] = []

    def step(self, name: str) -> Any:
        self.named.append(name)
        return nullcontext()


def written(folder: Path, text: str, name: str = "seq.py") -> str:
    (folder / name).write_text(text)
    return str(folder / name)


class Net:
    def forward(self) -> None: ...


def test_functions_before_the_export_get_the_model_and_those_after_it_the_file(tmp_path: Path) -> None:
    text = """
import shutil
def wider(model, inputs): model.seen = sorted(inputs); return model
def copied(path):
    new = path.replace("model.onnx", "other.onnx")
    shutil.copy(path, new)
    return new
SEQUENCE = [wider, "export", copied]
"""
    sequence, steps = read_sequence(written(tmp_path, text)), Steps()
    net: Any = sequence.changed_model(Net(), {"x": 1}, steps)
    assert net.seen == ["x"]
    changed = sequence.changed_onnx(written(tmp_path, "onnx", "model.onnx"), {}, steps)
    assert Path(changed).name == "other.onnx"
    assert steps.named == ["export.wider", "convert.copied"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x = (\n", ":1", "never closed"),
        ("x = 1\n", "", "no SEQUENCE"),
        ("def get_sequence(): ...\n", "", "it has get_sequence"),
        ("\nSEQUENCE = []\n", ":2", r"SEQUENCE is \[\]"),
        ("\n\nSEQUENCE = [3]\n", ":3", "has 3"),
        ('SEQUENCE = ["export", "export"]\n', ":1", "twice"),
        ("\nimport there_is_none\nSEQUENCE = [print]\n", ":2", "ModuleNotFoundError"),
    ],
)
def test_a_file_that_is_no_sequence_is_refused_with_its_line(tmp_path: Path, text: str, line: str, said: str) -> None:
    with pytest.raises(BadSequenceFile, match=said) as caught:
        read_sequence(written(tmp_path, text))
    assert caught.value.where == str(tmp_path / "seq.py") + line


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        ("\n    raise ValueError('too wide')", 2, "ValueError: too wide"),
        (" return None", 1, "returned None"),
        ("\n    open('/tmp/elsewhere.onnx', 'w').close()\n    return '/tmp/elsewhere.onnx'", 1, "beside the file"),
    ],
)
def test_a_function_that_fails_is_told_with_file_and_line(tmp_path: Path, body: str, line: int, said: str) -> None:
    body = body.replace("/tmp/", f"{tmp_path}/apart/")
    (tmp_path / "apart").mkdir()
    sequence = read_sequence(written(tmp_path, f"def bad(path):{body}\nSEQUENCE = ['export', bad]\n"))
    with pytest.raises(Unsupported, match=said) as caught:
        sequence.changed_onnx(written(tmp_path, "", "model.onnx"), {}, Steps())
    assert caught.value.stage == "convert"
    assert f"seq.py:{line}: bad" in caught.value.text


def parts(path: str, runtime: str = "onnxruntime") -> dict[str, Any]:
    settings = ModelSettings(
        identity="x",
        weights_digest="w",
        content_digest="c",
        runtime=runtime,
        options=RuntimeOptions(sequence_file=path),
    )
    job = MeasureJob(settings, runtime_named(runtime), Reports(lambda event: None))
    return job._key_parts("", [])


def test_another_content_of_the_file_or_of_one_that_it_imports_is_another_build(tmp_path: Path) -> None:
    path = written(tmp_path, "import parts\nSEQUENCE = [print]\n")
    alone = parts(path)
    assert alone != parts("")
    written(tmp_path, "X = 1\n", "parts.py")
    with_import = parts(path)
    assert with_import != alone
    written(tmp_path, "X = 2\n", "parts.py")
    assert parts(path) != with_import
    moved = tmp_path / "moved"
    moved.mkdir()
    written(moved, "import parts\nSEQUENCE = [print]\n")
    written(moved, "X = 2\n", "parts.py")
    assert digest_of_sequence(str(moved / "seq.py")) == digest_of_sequence(path)  # by content, not by place


def test_what_a_sequence_changes_is_checked_against_the_model_as_it_was(tmp_path: Path) -> None:
    """A sequence that makes a model wrong must not become its own reference."""
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    text = """
def wrong(model):
    model.bias.data += 1.0
    return model
def named(path):
    import onnx
    model = onnx.load(path)
    model.producer_name = "mine"
    onnx.save(model, path)
    return path
SEQUENCE = [wrong, "export", named]
"""
    build = tmp_path / "build"
    build.mkdir()
    settings = ModelSettings(
        runtime="onnxruntime", builds=str(build), options=RuntimeOptions(sequence_file=written(tmp_path, text))
    )
    events: list[Any] = []
    module = torch.nn.Linear(3, 2).eval()
    expected = module(torch.ones(1, 3)).detach().numpy()
    ModelBuilder(settings, runtime_named("onnxruntime"), Reports(events.append)).build(
        Captured(module, (torch.ones(1, 3),), {})
    )
    assert not [event for event in events if event["event"] == "failure"]
    steps = [step["step"] for step in json.loads((build / "facts.json").read_text())["steps"]]
    assert steps == ["reference", "export.wrong", "export", "optimise", "convert.named"]
    assert pytest.importorskip("onnx").load(str(build / "model.onnx")).producer_name == "mine"
    (reference,) = read_reference(str(build)).outputs.values()
    assert reference == pytest.approx(expected, abs=1e-6)
    assert module.bias.data.abs().max() < 1.0  # the caller's model is as it was


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_a_sequence_changes_a_copy_of_an_onnx_file(tmp_path: Path, runtime: str) -> None:
    text = """
from onnxruntime.quantization import quantize_dynamic
def int8(path):
    quantize_dynamic(path, path + ".int8")
    return path + ".int8"
SEQUENCE = ["export", int8]
"""
    events, build = built_from_file(tmp_path, text, runtime)
    assert not [event for event in events if event["event"] == "failure"]
    moved = build.rename(tmp_path / "moved")  # as a complete build is
    session = runtime_named(runtime).load(ArtifactFolder(str(moved)), RuntimeOptions())
    assert session.precision == "int8-dynamic"  # sets the tolerance
    (reference,) = read_reference(str(moved)).outputs.values()
    assert reference.tolist() == [[3.0, 3.0]]  # of the file as it was
    assert (moved / "sequence").exists() == (runtime == "onnxruntime")  # no copy stays without a use


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def fuse(model): return model\nSEQUENCE = [fuse]\n", "fuse of the build sequence takes a module of torch"),
        (
            "def renamed(path):\n    import onnx\n    m = onnx.load(path)\n    m.graph.node[0].output[0] = 'z'\n"
            "    m.graph.output[0].name = 'z'\n    onnx.save(m, path)\n    return path\nSEQUENCE = ['export', renamed]\n",
            "x float32 → y before, x float32 → z after",
        ),
    ],
)
def test_what_a_sequence_cannot_do_to_an_onnx_file_is_told(tmp_path: Path, text: str, said: str) -> None:
    events, _ = built_from_file(tmp_path, text, "onnxruntime")
    (failure,) = [event for event in events if event["event"] == "failure"]
    assert said in str(failure)


def built_from_file(folder: Path, text: str, runtime: str) -> tuple[list[Any], Path]:
    """A product with a matrix of ones, whose weights are in a file of their own."""
    onnx = pytest.importorskip("onnx")
    numpy: Any = pytest.importorskip("numpy")
    pytest.importorskip(runtime)
    make, kind = onnx.helper, onnx.TensorProto.FLOAT
    ports = [make.make_tensor_value_info(name, kind, shape) for name, shape in (("x", [1, 3]), ("y", [1, 2]))]
    weights = [onnx.numpy_helper.from_array(numpy.ones((3, 2), "float32"), "w")]
    graph = make.make_graph([make.make_node("MatMul", ["x", "w"], ["y"])], "g", ports[:1], ports[1:], weights)
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    path, build = folder / "model.onnx", folder / "build"
    onnx.save(model, str(path), save_as_external_data=True, location="weights.bin", size_threshold=0)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    numpy.save(folder / "x.npy", numpy.ones((1, 3), "float32"))
    build.mkdir()
    settings = ModelSettings(
        runtime=runtime,
        builds=str(build),
        file=str(path),
        options=RuntimeOptions(sequence_file=written(folder, text)),
        input_files={"x": str(folder / "x.npy")},
    )
    events: list[Any] = []
    ModelBuilder(settings, runtime_named(runtime), Reports(events.append)).build_file(str(path))
    assert {name: (folder / name).read_bytes() for name in before} == before
    return events, build
