"""What loading a .pt2 would run, found without loading it."""

from __future__ import annotations

import collections
import contextlib
import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmodels.files.file_trust import code_in, is_arithmetic, is_of_tensors, is_operator, names_in_pickle

SIZE = {"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)"}}
PROGRAM = {"graph": {"nodes": [{"target": "torch.ops.aten.linear.default", "inputs": []}], "sizes": [SIZE]}}
CONFIG: dict[str, Any] = {"config": {"w": {"path_name": "weight_0", "use_pickle": False}}}


class Runs:
    """Its pickle calls a function."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


def saved(value: Any, protocol: int = 2, root: str = "archive", **more: bytes) -> bytes:
    """As torch.save writes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{root}/data.pkl", pickle.dumps(value, protocol))
        for name, content in more.items():
            archive.writestr(f"{root}/{name}", content)
    return file.getvalue()


INPUTS = saved(collections.OrderedDict(x=1))


def file(folder: Path, *, names: tuple[str, ...] = (), **changed: Any) -> Path:
    """A .pt2 of the kind that torch 2.8 and newer write, with some members changed; one that is None is left out."""
    members: dict[str, Any] = {
        "data/weights/weight_0": b"\0" * 8,
        "data/weights/model_weights_config.json": CONFIG,
        "data/constants/model_constants_config.json": {"config": {}},
        "models/model.json": PROGRAM,
        "data/sample_inputs/model.pt": INPUTS,
        "archive_format": b"pt2",
    } | changed.pop("members", {})
    path = folder / "model.pt2"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                archive.writestr(f"model/{name}", text)
        for name in names:
            archive.writestr(name, INPUTS)
    return path


def test_an_ordinary_file_runs_nothing(tmp_path: Path) -> None:
    assert code_in(str(file(tmp_path))) is None


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"data/sample_inputs/model.pt": saved([Runs(os.system, "x")])}, "is a pickle that calls posix.system"),
        ({"data/sample_inputs/model.pt": saved([Runs(eval, "x")], 5)}, "is a pickle that calls builtins.eval"),
        ({"data/sample_inputs/model.pt": pickle.dumps(Runs(eval, "x"), 0)}, "is not a pickle in the current format"),
        ({"data/sample_inputs/model.pt": saved(1, **{"other.pkl": b"."})}, "does not contain exactly one pickle"),
        ({"data/sample_inputs/model.pt": saved(1, **{"DATA.PKL": b"."})}, "two members of the same name"),
        ({"data/sample_inputs/model.pt": saved(1, **{"code/x.py": b"."})}, "is a TorchScript archive"),
        ({"data/weights/model.pt": saved([Runs(os.system, "x")])}, "data/weights/model.pt is a pickle that calls"),
        (
            {
                "data/weights/model_weights_config.json": {
                    "config": {"w": {"path_name": "weight_0", "use_pickle": True}}
                },
                "data/weights/weight_0": saved(Runs(os.system, "x")),
            },
            "data/weights/weight_0 is a pickle that calls posix.system",
        ),
        (
            {"data/weights/model_weights_config.json": {"config": {"w": {"path_name": "../x", "use_pickle": True}}}},
            "which is missing",
        ),
        (
            {"data/constants/model_constants_config.json": {"config": {"c": {"path_name": "opaque_obj_0"}}}},
            "is an object loaded by Python's pickle",
        ),
        (
            {"data/constants/model_constants_config.json": {"config": {"c": {"path_name": "custom_obj_0"}}}},
            "is an object of another library",
        ),
        ({"data/aotinductor/model/x.so": b"\x7fELF"}, "is compiled code of AOTInductor"),
        ({"models/model.json": {"nodes": [{"target": "torch.hub.load", "inputs": []}]}}, "calls torch.hub.load"),
        ({"models/model.json": {"arg": {"as_operator": "torch.ops.load_library"}}}, "calls torch.ops.load_library"),
        (
            {"models/model.json": {"expr_str": "__import__('os').system('x')"}},
            "has a size that is more than arithmetic",
        ),
    ],
)
def test_whatever_would_run_code_is_told(tmp_path: Path, members: dict[str, Any], says: str) -> None:
    assert says in (code_in(str(file(tmp_path, members=members))) or "")


def test_archives_that_another_reader_may_see_otherwise_are_not_believed(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = file(tmp_path, names=("model/data/sample_inputs/model.pt",))
    assert code_in(str(twice)) == "it has two members of the same name"
    assert code_in(str(file(tmp_path, names=("model/Models/model.json",)))) == "it has two members of the same name"
    assert code_in(str(file(tmp_path, names=("other/models/model.json",)))) == "it has two archives in one"
    path = file(tmp_path)
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    assert code_in(str(path)) == "there is data before its archive"


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello" * 100])
def test_what_is_no_archive_is_no_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read"):
        code_in(str(path))
    with pytest.raises(ValueError, match="is not JSON"):
        code_in(str(file(tmp_path, members={"models/model.json": b"{"})))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


@given(plain, st.sampled_from([2, 3, 4, 5]))
def test_plain_values_name_nothing_strange(value: Any, protocol: int) -> None:
    found = names_in_pickle(pickle.dumps(value, protocol))
    assert found is not None
    assert all(map(is_of_tensors, found)), found


@given(plain, st.sampled_from([2, 3, 4, 5]), st.sampled_from([eval, os.system, os.path.join, pickle.loads]))
def test_a_call_is_seen_wherever_it_is_hidden(value: Any, protocol: int, function: Any) -> None:
    content = pickle.dumps([value, "os", "system", {"x": (value, Runs(function, "x"))}], protocol)
    found = names_in_pickle(content)
    assert found is None or not all(map(is_of_tensors, found))


@given(st.binary(max_size=200))
def test_no_content_breaks_the_reader(content: bytes) -> None:
    found = names_in_pickle(content)
    assert found is None or all(isinstance(name, str) for name in found)


def test_a_name_that_is_put_together_on_the_stack_is_not_guessed() -> None:
    hidden = b"\x80\x04\x8c\x0bcollections\x8c\x0bOrderedDict00\x8c\x02os\x8c\x06system\x93."
    assert names_in_pickle(hidden) in (None, ["os.system"])
    popped = b"\x80\x04\x8c\x02os\x8c\x06system\x8c\x0bcollections0\x8c\x0bOrderedDict0\x93."
    assert names_in_pickle(popped) is None


@pytest.mark.parametrize(
    "target",
    ["torch.ops.aten.add.Tensor", "torch.ops.aten.__and__.Tensor", "_operator.floordiv", "math.trunc", "torch.sym_max",
     "torch.ops.higher_order.cond", "torch.ops.torchvision.nms.default"],
)  # fmt: skip
def test_operators_are_known(target: str) -> None:
    assert is_operator(target)


@pytest.mark.parametrize(
    "target",
    ["torch.load", "torch.ops.load_library", "torch.ops.aten.__class__", "_operator.call", "_operator.methodcaller",
     "os.system", "torch.utils.cpp_extension.load", "torch.ops.aten.add.__globals__.x", "_operator.attrgetter"],
)  # fmt: skip
def test_other_functions_are_no_operators(target: str) -> None:
    assert not is_operator(target)


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        ("Mul(Integer(2), Symbol('s0', integer=True, positive=True))", True),
        ("FloorDiv(Add(Symbol('s1'), Integer(-3)), Integer(2))", True),
        ("2*s0 + 1", True),
        ("Max(1, s0//2)", True),
        ("open('x')", False),
        ("sympify('x')", False),
        ("().__class__", False),
        ("Symbol('a b')", False),
        ("exec(s0)", False),
        ("[x for x in s0]", False),
        ("lambda: 0", False),
        ("s0.system(1)", False),
    ],
)
def test_sizes_are_arithmetic(expression: str, known: bool) -> None:
    assert is_arithmetic(expression) is known


def test_what_torch_writes_is_believed_and_what_it_would_run_is_not(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    nn = torch.nn

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.convolution, self.table = nn.Conv2d(3, 8, 3, stride=2), nn.Embedding(9, 8)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.half = torch.ones(8, dtype=torch.bfloat16)

        def forward(self, x: Any, ids: Any) -> Any:
            seen = self.convolution(x).flatten(2).transpose(1, 2)
            return {
                "y": self.layer(torch.cat([seen, self.table(ids)], 1)) * self.half,
                "n": torch.arange(x.shape[0] * 2),
            }

    batch, height = torch.export.Dim("batch"), torch.export.Dim("height", min=8, max=64)
    shapes = {"x": {0: batch, 2: height}, "ids": {0: batch}}
    inputs = torch.randn(2, 3, 16, 16), torch.ones(2, 5, dtype=torch.long)
    program = torch.export.export(Net().eval(), inputs, dynamic_shapes=shapes, strict=False)
    for protocol in (2, 4):
        torch.export.save(program, tmp_path / "net.pt2", pickle_protocol=protocol)
        assert code_in(str(tmp_path / "net.pt2")) is None
    content = io.BytesIO()
    torch.save(((Runs(os.system, f"touch {tmp_path / 'ran'}"),), {}), content)
    with zipfile.ZipFile(tmp_path / "net.pt2") as old, zipfile.ZipFile(tmp_path / "bad.pt2", "w") as new:
        for name in old.namelist():
            new.writestr(name, content.getvalue() if name.endswith("sample_inputs/model.pt") else old.read(name))
    assert "calls posix.system" in (code_in(str(tmp_path / "bad.pt2")) or "")
    assert not (tmp_path / "ran").exists()
    with contextlib.suppress(TypeError):  # of a message that torch logs wrongly
        torch.export.load(tmp_path / "bad.pt2")
    assert (tmp_path / "ran").exists(), "torch itself runs it: this is what the check is for"
