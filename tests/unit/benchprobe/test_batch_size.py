"""How many items a batch holds."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from benchprobe.batch_size import find, finder

X = numpy.zeros((8, 3))
Pair = namedtuple("Pair", "a b")


@dataclass
class Batch:
    name: str
    inputs: Any = field(default_factory=lambda: X)


class Slotted:
    __slots__ = ("x", "y")

    def __init__(self) -> None:
        self.y = X


@pytest.mark.parametrize(
    "batch",
    [
        X,
        (X, 1),
        [X, X],
        {"ids": X},
        ["text", {"x": [None, X]}],
        Pair("a", X),
        UserDict(ids=X),
        Batch("b"),
        SimpleNamespace(x=X),
        Slotted(),
        (numpy.float32(1), X),
        ({}, (), X),
    ],
    ids=lambda batch: type(batch).__name__,
)
def test_it_is_the_first_dimension_of_the_first_tensor(batch):
    assert find(batch) == 8
    assert finder()(batch) == 8


@pytest.mark.parametrize("batch", [3, "text", None, [], [1, 2], {"a": "b"}, object(), numpy.float64(1), 1.5, range(9)])
def test_without_a_tensor_it_is_unknown(batch):
    assert find(batch) is None
    assert finder()(batch) is None


def test_each_batch_is_looked_at_since_the_last_may_be_shorter():
    size_of = finder()
    assert [size_of((numpy.zeros((n, 2)), n)) for n in (8, 8, 3)] == [8, 8, 3]


def test_a_batch_of_another_structure_is_searched_again():
    size_of = finder()
    assert size_of({"x": X}) == 8
    assert size_of([numpy.zeros(5)]) == 5
    assert size_of(7) is None
    assert size_of({"x": X}) == 8


def test_a_batch_that_contains_itself_ends_the_search():
    loop: list[Any] = []
    loop.append(loop)
    assert find(loop) is None


def test_tensors_and_encodings_of_torch_and_transformers_are_found():
    torch = pytest.importorskip("torch")
    assert find({"input_ids": torch.zeros(16, 128), "labels": torch.zeros(16)}) == 16
