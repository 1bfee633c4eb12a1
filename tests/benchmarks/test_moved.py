"""The least that a step must move, against what is known of small models by hand."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from shipped_benchmarks import load

from benchmodels.runtimes.parts.torch_modules import NO_COMPILER, allow_compiling

torch = pytest.importorskip("torch")
load("vision_inference")  # puts what benchmarks share on the path

from torch import nn  # noqa: E402

from workload.moved import inference_bytes, training_bytes  # noqa: E402

FLOAT = 4
ROWS, INSIDE, OUTSIDE = 10, 64, 32
WEIGHTS = (INSIDE * OUTSIDE + OUTSIDE) * FLOAT


def batch() -> torch.Tensor:
    return torch.randn(ROWS, INSIDE)


def test_a_layer_reads_its_weights_and_inputs_and_writes_its_answer() -> None:
    model, x = nn.Linear(INSIDE, OUTSIDE), batch()
    assert inference_bytes(model, lambda: model(x), x) == WEIGHTS + ROWS * (INSIDE + OUTSIDE) * FLOAT


def test_weights_are_read_in_every_pass() -> None:
    model, x = nn.Linear(INSIDE, INSIDE), batch()
    once = inference_bytes(model, lambda: model(x), x)
    thrice = inference_bytes(model, lambda: model(model(model(x))), x)
    assert thrice - once == 2 * (INSIDE * INSIDE + INSIDE) * FLOAT


def test_of_a_table_only_the_rows_looked_up_count_each_once() -> None:
    model, asked = nn.Embedding(1000, INSIDE), torch.tensor([3, 3, 7])
    moved = inference_bytes(model, lambda: model(asked), asked)
    assert moved == 2 * INSIDE * FLOAT + asked.nbytes + 3 * INSIDE * FLOAT


def test_a_cache_counts_where_few_queries_meet_many_keys() -> None:
    model = nn.Identity()
    keys, values = (torch.randn(1, 2, 50, 8) for _ in range(2))

    def attend(queries: int) -> int:
        query = torch.randn(1, 2, queries, 8)
        work = lambda: nn.functional.scaled_dot_product_attention(query, keys, values)  # noqa: E731
        return inference_bytes(model, work, query) - 2 * query.nbytes

    assert attend(1) == keys.nbytes + values.nbytes
    assert attend(50) == 0, "these are handed from one operator to the next"


@pytest.mark.parametrize(
    ("optimizer", "states"),
    [
        (lambda found: torch.optim.SGD(found, lr=0.1), 0),
        (lambda found: torch.optim.SGD(found, lr=0.1, momentum=0.9), 1),
        (lambda found: torch.optim.AdamW(found, lr=0.1), 2),
    ],
)
def test_training_moves_weights_gradients_states_and_what_is_kept(optimizer: object, states: int) -> None:
    first, second, x = nn.Linear(INSIDE, INSIDE), nn.Linear(INSIDE, OUTSIDE), batch()
    model = nn.Sequential(first, nn.ReLU(), second)
    weights = sum(p.nbytes for p in model.parameters())
    kept = x.nbytes + ROWS * INSIDE * FLOAT  # the inputs of both layers; ReLU keeps the second one, too
    again = second.weight.nbytes  # for the gradient of its input; that of the first has none
    made = optimizer(list(model.parameters()))  # type: ignore[operator]
    whole, without = (training_bytes(model, lambda: model(x).sum(), made, kept=each) for each in (True, False))
    assert without == weights + again + (4 + 2 * states) * weights
    assert whole - without == 2 * kept


def test_of_a_table_with_sparse_gradients_only_rows_are_trained() -> None:
    model, asked = nn.Embedding(1000, INSIDE, sparse=True), torch.tensor([3, 3, 7])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    moved = training_bytes(model, lambda: model(asked).sum(), optimizer, kept=False)
    assert moved == 5 * 2 * INSIDE * FLOAT, "read; gradient written and read; row read and written"


def test_counting_leaves_random_numbers_and_gradients_alone() -> None:
    model, x = nn.Sequential(nn.Linear(INSIDE, INSIDE), nn.Dropout(0.5)), batch()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    training_bytes(model, lambda: model(x).sum(), torch.optim.AdamW(model.parameters()), kept=True)
    assert torch.equal(torch.rand(3), expected)
    assert all(p.grad is None for p in model.parameters())


class Own(nn.Linear):
    """torch's layers are not compiled alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests switch it off."""
    monkeypatch.delenv(NO_COMPILER, raising=False)
    importlib.import_module("torch._dynamo")
    allow_compiling()
    torch.compiler.reset()


@pytest.mark.usefixtures("compiler")
def test_what_is_compiled_later_is_compiled_although_it_was_watched() -> None:
    compiled = []

    def backend(graph: Any, inputs: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    model, x = Own(INSIDE, OUTSIDE), batch()
    model.compile(backend=backend)
    inference_bytes(model, lambda: model(x), x)
    assert compiled == []
    with torch.inference_mode():
        model(x)
    assert len(compiled) == 1
