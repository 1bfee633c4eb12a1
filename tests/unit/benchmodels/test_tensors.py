"""Structures of tensors: one order, names of their own, and files that hold every bit."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections import OrderedDict, namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmodels.arrays import load_arrays, save_arrays
from benchmodels.tensors import flatten, flatten_call, is_plain, rebuilt, rebuilt_call, to_arrays

torch = pytest.importorskip("torch")
Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass(frozen=True)
class Box:
    inside: Any
    label: str = "box"


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held


def numbered(count: int) -> list[Any]:
    return [torch.tensor(float(i)) for i in range(count)]


def everything() -> Any:
    t = numbered(8)
    return {
        "tuple": (t[0], [t[1], "text", None]),
        "pair": Pair(t[2], 3),
        "box": Box({"deep": t[3]}),
        "object": SimpleNamespace(keys=[t[4]], size=2),
        "slots": Slotted(t[5]),
        "ordered": OrderedDict(z=t[6], a=t[7]),
    }


def test_every_tensor_is_found_in_the_order_and_by_the_name_of_its_place():
    assert [(name, tensor.item()) for name, tensor in flatten(everything())] == [
        ("tuple.0", 0), ("tuple.1.0", 1), ("pair.left", 2), ("box.inside.deep", 3), ("object.keys.0", 4),
        ("slots.held", 5), ("ordered.z", 6), ("ordered.a", 7),
    ]  # fmt: skip


def test_a_lone_tensor_is_called_output():
    assert [name for name, _ in flatten(torch.zeros(1))] == ["output"]


def test_names_that_would_be_the_same_are_kept_apart_and_nothing_is_lost():
    clash = {"a.b": torch.zeros(1), "a": {"b": torch.ones(1)}, "a.b#2": torch.full((1,), 2.0)}
    arrays = to_arrays(clash)
    assert len(arrays) == 3
    assert [array[0] for array in arrays.values()] == [0, 1, 2]


def test_a_tensor_that_is_returned_twice_is_there_twice():
    x = torch.ones(2)
    assert [name for name, _ in flatten((x, x))] == ["0", "1"]


def test_an_object_that_holds_itself_ends():
    cache = SimpleNamespace(keys=torch.zeros(1))
    cache.again = cache
    assert [name for name, _ in flatten(cache)] == ["keys"]
    copied = rebuilt(cache, lambda tensor: tensor + 1)
    assert copied.again is copied
    assert copied.keys.item() == 1


def test_a_rebuilt_structure_has_the_same_places_and_shares_nothing():
    original = everything()
    copied = rebuilt(original, lambda tensor: tensor + 10)
    assert [name for name, _ in flatten(copied)] == [name for name, _ in flatten(original)]
    assert [tensor.item() for _, tensor in flatten(copied)] == list(range(10, 18))
    assert [tensor.item() for _, tensor in flatten(original)] == list(range(8))
    assert type(copied["ordered"]) is OrderedDict
    assert copied["pair"].right == 3
    assert copied["object"] is not original["object"]
    assert copied["object"].keys is not original["object"].keys


def test_arguments_are_named_and_rebuilt_in_one_order():
    args, kwargs = (torch.tensor(0), {"mask": torch.tensor(1)}), {"use": True, "past": (torch.tensor(2),)}
    assert [name for name, _ in flatten_call(args, kwargs, ["ids"])] == ["ids", "arg1.mask", "past.0"]
    new_args, new_kwargs = rebuilt_call(args, kwargs, lambda tensor: tensor * 2)
    assert [t.item() for _, t in flatten_call(new_args, new_kwargs)] == [0, 2, 4]
    assert new_kwargs["use"] is True


def test_an_empty_cache_is_copied_though_no_tensor_is_in_it():
    cache = SimpleNamespace(layers=[])
    copied = rebuilt(cache, lambda tensor: tensor)
    copied.layers.append(1)
    assert cache.layers == []


def test_a_transformers_cache_is_looked_into():
    cache_utils = pytest.importorskip("transformers.cache_utils")
    cache = cache_utils.DynamicCache()
    cache.update(torch.zeros(1, 1, 2, 4), torch.ones(1, 1, 2, 4), 0)
    assert [tuple(t.shape) for _, t in flatten(cache)] == [(1, 1, 2, 4)] * 2
    copied = rebuilt(cache, lambda tensor: tensor.clone())
    copied.update(torch.zeros(1, 1, 1, 4), torch.ones(1, 1, 1, 4), 0)
    assert (cache.get_seq_length(), copied.get_seq_length()) == (2, 3)
    assert not is_plain(cache)


def test_plain_inputs_are_told_from_those_that_a_call_may_use_up():
    assert is_plain([torch.zeros(1), {"a": (1, "x", None, torch.float32)}])
    assert not is_plain([SimpleNamespace()])


def test_outputs_are_copies():
    out = torch.zeros(2)
    array = to_arrays(out)["output"]
    out += 1
    assert array.tolist() == [0, 0]


def test_a_file_holds_every_value_and_needs_no_torch_to_be_read(tmp_path: Path):
    kept = {
        "a/b é": torch.arange(6).reshape(2, 3).t(),
        "bf16": torch.tensor([1.0, -2.5, float("inf"), float("nan")]).bfloat16(),
        "bf16 scalar": torch.tensor(0.3).bfloat16(),
        "float8": torch.tensor([0.5, -448.0, 1.0]).to(torch.float8_e4m3fn),
        "half": torch.tensor([0.1]).half(),
        "bool": torch.tensor([True, False]),
        "complex": torch.tensor([1 + 2j]).conj(),
        "empty": torch.zeros(0, 3),
        "array": np.float64(0.1),
    }
    path = tmp_path / "inputs.npz"
    save_arrays(str(path), kept)
    loaded = load_arrays(str(path))
    assert list(loaded) == list(kept)
    for name, tensor in kept.items():
        expected = np.asarray(tensor) if name == "array" else to_arrays(tensor)["output"]
        assert loaded[name].dtype == expected.dtype, name
        assert loaded[name].shape == expected.shape, name
        np.testing.assert_array_equal(loaded[name], expected, err_msg=name)
    assert os.listdir(tmp_path) == ["inputs.npz"]
    code = f"import sys; from benchmodels.arrays import load_arrays; load_arrays({str(path)!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_what_would_need_pickle_is_refused_and_the_older_file_stays(tmp_path: Path):
    path = tmp_path / "kept.npz"
    save_arrays(str(path), {"x": torch.zeros(1)})
    with pytest.raises(ValueError, match="'y' holds Python objects"):
        save_arrays(str(path), {"y": np.array([object()])})
    assert list(load_arrays(str(path))) == ["x"]
    assert os.listdir(tmp_path) == ["kept.npz"]


def test_numbers_and_arrays_are_outputs_where_no_tensor_is() -> None:
    found = to_arrays({"ids": [3, 1], "score": 0.5, "text": "a", "table": np.arange(3)})
    assert list(found) == ["table", "numbers"]
    assert found["numbers"].tolist() == [3, 1, 0.5]
    assert to_arrays([True, False])["numbers"].dtype.kind == "b"
    assert list(to_arrays({"x": torch.ones(1), "count": 3})) == ["x"]
    assert to_arrays("text") == {}
