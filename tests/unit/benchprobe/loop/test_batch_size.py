"""How many items a batch holds."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from benchprobe.loop.batch_size import find, finder, given_once, guarded, of_loader

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


@pytest.mark.parametrize(
    ("loaded", "shape", "size"),
    [
        (64, (64, 3), 64),
        (64, (64, 64), 64),
        (64, (128, 64, 3), 64),  # time comes first
        (64, (10, 64, 3), 64),
        (64, (10, 3), 10),  # the data set holds less than a batch
        (32, (700, 3), None),  # such as the nodes of 32 graphs
        (64, (3, 64, 64), None),  # nobody can tell which of the two
    ],
)
def test_the_dimension_of_the_size_that_the_loader_states_counts(loaded, shape, size):
    doubts: list[str] = []
    size_of = finder(loaded, doubts.append)
    assert [size_of(numpy.zeros(shape)) for _ in range(2)] == [size, size]
    assert len(doubts) == (size is None)
    assert all(f"loader says {loaded}" in text for text in doubts)


@pytest.mark.parametrize(
    ("batch", "doubted"),
    [
        ((X, numpy.zeros(8)), False),
        ({"ids": X, "mask": X, "text": ["a"]}, False),
        (X, True),
        ((X, numpy.zeros(5)), True),
        (({"x": X}, 3), True),
    ],
)
def test_the_first_dimension_is_doubted_where_nothing_agrees(batch, doubted):
    doubts: list[str] = []
    assert finder(None, doubts.append)(batch) == 8
    assert [text.startswith("took the first dimension (8 × 3) for the batch") for text in doubts] == [True] * doubted


def test_loaders_state_their_batch_size():
    data = pytest.importorskip("torch.utils.data")
    assert of_loader(data.DataLoader([1, 2, 3], batch_size=2)) == 2
    assert of_loader(data.DataLoader([1, 2, 3], batch_size=None)) is None
    assert of_loader(SimpleNamespace(batch_size=True)) is None
    assert of_loader([1]) is None


def test_a_batch_that_contains_itself_ends_the_search():
    loop: list[Any] = []
    loop.append(loop)
    assert find(loop) is None


def test_tensors_and_encodings_of_torch_and_transformers_are_found():
    torch = pytest.importorskip("torch")
    assert find({"input_ids": torch.zeros(16, 128), "labels": torch.zeros(16)}) == 16


@pytest.mark.parametrize("size", [10**400, 2**63, -1])
def test_what_can_be_no_number_of_items_is_unknown_and_told(size: int):
    told: list[str] = []
    assert given_once(size, told.append) is None
    assert guarded(lambda batch: size, told.append)(X) is None
    assert find(SimpleNamespace(shape=(size,))) is None
    assert len(told) == 2
    assert all("cannot be a number of items" in text and len(text) < 200 for text in told)


def test_a_size_given_once_is_taken_as_it_is():
    assert given_once(0, pytest.fail) == 0
    assert given_once(64, pytest.fail) == 64
    assert given_once(None, pytest.fail) is None
