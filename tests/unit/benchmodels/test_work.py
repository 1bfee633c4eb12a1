"""Arithmetic and bytes, counted by hand and by us."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from benchmodels.measure import work  # noqa: E402
from benchmodels.measure.work import count_work  # noqa: E402

FLOAT, LONG = 4, 8


@torch.library.custom_op("benchprobe_tests::strange", mutates_args=())
def strange(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight


strange.register_fake(lambda x, weight: x @ weight)


class Looks(nn.Module):
    """Decides by its data."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.layer(x) if x.sum().item() > 0 else x


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(100, 16)
        self.head = nn.Linear(16, 100, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: Any) -> Any:
        return self.head(self.table(ids))


class Function(nn.Module):
    """A function as a module, with one weight that it is given after its inputs."""

    def __init__(self, function: Any, *shape: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs, self.weight)


class TwoTables(nn.Module):
    """As encoders and decoders that share their embedding; a table of positions of which a part is cut out."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(100, 16), nn.Embedding(100, 16)
        self.second.weight = self.first.weight
        self.positions = nn.Parameter(torch.zeros(50, 16))

    def forward(self, ids: Any) -> Any:
        assert self.first.weight.dtype is torch.float32  # a question about it is no use of it
        return self.first(input=ids) + self.second(ids) + self.positions[:8]


CASES = {
    "linear": (nn.Linear(64, 32), torch.ones(8, 64), 2 * 8 * 64 * 32, FLOAT * (64 * 32 + 32 + 8 * 64 + 8 * 32)),
    "convolution": (nn.Conv2d(3, 8, 3, padding=1, bias=False), torch.ones(2, 3, 16, 16), 2 * 2 * 8 * 16 * 16 * 27, FLOAT * (8 * 27 + 2 * 256 * 11)),
    "recurrent": (nn.LSTM(32, 32, bias=False), torch.ones(5, 2, 32), 2 * 5 * 2 * 8 * 32 * 32, None),
    "attention": (nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), torch.ones(2, 16, 64), 2 * 2 * 16 * 64 * (4 * 64 + 2 * 128) + 4 * 2 * 16 * 16 * 64, None),
    "embedding": (nn.Embedding(1000, 16), torch.zeros(2, 8, dtype=torch.long), 0, 16 * (16 * FLOAT + LONG + 16 * FLOAT)),
    "tied": (Tied(), torch.zeros(2, 8, dtype=torch.long), 2 * 16 * 16 * 100, 100 * 16 * FLOAT + 16 * LONG + 16 * 100 * FLOAT),
    "vector": (Function(torch.matmul, 7), torch.ones(3, 6, 7), 2 * 3 * 6 * 7, None),
    "inner product": (Function(torch.dot, 7), torch.ones(7), 2 * 7, None),
    "complex": (Function(lambda x, w: x @ w.to(torch.complex64), 7, 8), torch.ones(6, 7, dtype=torch.complex64), 8 * 6 * 7 * 8, None),
    "table": (Function(nn.functional.embedding, 1000, 16), torch.zeros(2, 8, dtype=torch.long), 0, 16 * (16 * FLOAT + LONG + 16 * FLOAT)),
    "tables": (TwoTables(), torch.zeros(2, 8, dtype=torch.long), 0, 2 * 16 * 16 * FLOAT + 8 * 16 * FLOAT + 16 * LONG + 16 * 16 * FLOAT),
    "given twice": (Function(lambda pair, w: pair[0] * pair[1] * w, 4), (x := torch.ones(4), x), 0, 3 * 4 * FLOAT),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["_on_no_device", "_without_data", "_for_real"])
def test_every_way_of_counting_gives_what_the_formula_says(name: str, way: str) -> None:
    module, inputs, flops, _ = CASES[name]
    assert getattr(work, way)(module, (inputs,), {}).flops == flops


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case[3] is not None])
def test_bytes_are_each_tensor_once_and_only_the_rows_that_are_looked_up(name: str) -> None:
    module, inputs, flops, size = CASES[name]
    assert count_work(module, (inputs,), {})[:3] == (flops, size, None)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("product", [torch.matmul, torch.sparse.mm])
@pytest.mark.parametrize("may_call", [False, True])
def test_of_a_sparse_tensor_only_what_it_holds_counts(layout: Any, product: Any, may_call: bool) -> None:
    adjacency = torch.eye(20).to_sparse(layout=layout)
    places = 2 * 20 * LONG if layout == torch.sparse_coo else (21 + 20) * LONG
    found = count_work(Function(product, 20, 8), (adjacency,), {}, may_call=may_call)
    assert found[:2] == (2 * 20 * 8, places + 20 * FLOAT + 2 * 20 * 8 * FLOAT)


@pytest.mark.skipif(not hasattr(torch, "_grouped_mm"), reason="this torch has none")
def test_the_experts_of_a_mixture_are_counted() -> None:
    groups = torch.tensor([2, 5, 8], dtype=torch.int32)
    experts = Function(lambda x, w: torch._grouped_mm(x, w.bfloat16(), offs=groups), 3, 16, 32)
    found = count_work(experts, (torch.ones(8, 16, dtype=torch.bfloat16),), {}, may_call=True)
    assert found.flops == 2 * 8 * 16 * 32


@pytest.mark.parametrize("may_call", [False, True])
def test_a_model_with_an_operator_that_nobody_knows_has_no_arithmetic(may_call: bool) -> None:
    layer = Function(torch.ops.benchprobe_tests.strange, 8, 8)
    found = count_work(nn.Sequential(nn.Linear(8, 8), layer), (torch.ones(2, 8),), {}, may_call=may_call)
    assert found[:3] == (
        None,
        (2 * 8 * 8 + 8 + 2 * 2 * 8) * FLOAT,
        "no rule for benchprobe_tests::strange",
    )


def test_a_lower_precision_moves_fewer_bytes() -> None:
    module, inputs, flops, size = CASES["linear"]
    assert count_work(module, (inputs,), {}, "bf16")[:2] == (flops, size / 2)
    assert count_work(module, (inputs,), {}, "int8-dynamic").bytes_ == size - 3 * 64 * 32
    assert count_work(module, (inputs,), {}, "int4-weights").bytes_ == size - 3.5 * 64 * 32


def test_a_model_that_looks_into_its_data_is_counted_in_a_real_call() -> None:
    found = count_work(Looks(), (torch.ones(2, 4),), {})
    assert found.flops == 64
    assert "counted in a real call" in str(found.note)


def test_a_model_that_fails_is_not_counted_and_nothing_is_raised() -> None:
    found = count_work(nn.Linear(4, 4), (torch.ones(2, 5),), {})
    assert found.flops is None
    assert "mat1 and mat2" in str(found.note) or "shape" in str(found.note)


@pytest.mark.parametrize("may_call", [False, True])
def test_counting_leaves_modes_random_numbers_and_settings_as_they_are(
    monkeypatch: pytest.MonkeyPatch, may_call: bool
) -> None:
    # After a product in bf16, torch itself has turned it off for good on processors without bf16.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", True)
    module = nn.TransformerEncoderLayer(16, 2, 16).train()
    module.dropout.eval()
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    assert count_work(module, (torch.ones(2, 2, 16, requires_grad=True),), {}, may_call=may_call).flops
    assert torch.equal(torch.rand(3), expected)
    assert module.training
    assert not module.dropout.training
    assert torch.backends.mkldnn.enabled
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch.is_grad_enabled()
    assert all(parameter.device.type == "cpu" for parameter in module.parameters())


def test_arithmetic_is_told_apart_by_what_multiplies() -> None:
    class Mixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution, self.layer, self.recurrent = nn.Conv2d(3, 4, 3), nn.Linear(4, 5), nn.LSTM(5, 6)

        def forward(self, x: Any) -> Any:
            return self.recurrent(self.layer(self.convolution(x).mean((-2, -1))).unsqueeze(0))[0]

    for may_call in (True, False):
        found = count_work(Mixed(), (torch.randn(2, 3, 6, 6),), {}, may_call=may_call)
        convolutions, products = 2 * 2 * 4 * 4 * 4 * 3 * 9, 2 * 2 * 4 * 5
        recurrent = 2 * 2 * 4 * 6 * (5 + 6)
        assert found.kinds == {"convolutions": convolutions, "products": products, "recurrent layers": recurrent}
        assert found.flops == convolutions + products + recurrent
    assert not Mixed().recurrent._forward_hooks
