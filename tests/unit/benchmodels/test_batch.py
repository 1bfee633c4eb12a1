"""How many items a call has: known with evidence only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmodels.identity.signatures import Leaf, Signature, signature_of
from benchmodels.measure.batch import Batch, of_independent_entries, of_known_task, of_layers, varying_dimensions

torch: Any = pytest.importorskip("torch")
nn: Any = torch.nn


def call_of(**shapes: tuple[int, ...] | str) -> Signature:
    leaves = [
        Leaf(name, value=shape) if isinstance(shape, str) else Leaf(name, shape, "float32")
        for name, shape in shapes.items()
    ]
    return Signature(tuple(leaves))


class TestVaryingDimensions:
    def test_one_size_that_changes_everywhere_is_one_dimension(self) -> None:
        own, other = call_of(ids=(4, 9), mask=(4, 9)), call_of(ids=(8, 9), mask=(8, 9))
        assert varying_dimensions(own, [other]) == [[("ids", 0), ("mask", 0)]]
        time_first = call_of(x=(64, 2, 5)), call_of(x=(64, 3, 5))
        assert varying_dimensions(time_first[0], [time_first[1]]) == [[("x", 1)]]

    @pytest.mark.parametrize(
        "other",
        [
            call_of(x=(4, 9)),
            call_of(x=(8, 7)),
            call_of(x=(8, 9, 1)),
            call_of(x=(8, 9), y=(8,)),
            call_of(y=(8, 9)),
            call_of(x="3"),
        ],
    )
    def test_calls_that_are_the_same_or_differ_otherwise_tell_nothing(self, other: Signature) -> None:
        assert varying_dimensions(call_of(x=(4, 9)), [other]) == []

    def test_dimensions_that_change_by_different_sizes_are_not_one(self) -> None:
        assert varying_dimensions(call_of(x=(4, 9), y=(4, 2)), [call_of(x=(8, 9), y=(6, 2))]) == []

    def test_each_set_is_told_once(self) -> None:
        others = [call_of(x=(8, 9)), call_of(x=(2, 9)), call_of(x=(4, 5))]
        assert varying_dimensions(call_of(x=(4, 9)), others) == [[("x", 0)], [("x", 1)]]


class Causal(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.cumsum(0)


class Attention(nn.Module):
    def forward(self, x: Any) -> Any:
        return (x @ x.transpose(-1, -2)).softmax(-1) @ x


class Pooled(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.mean(0)


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        return {"y": self.layers(x) * scale, "classes": self.layers(x).argmax(-1), "all": x.sum()}


def independent(module: Any, x: Any, *places: int, **kwargs: Any) -> Batch | None:
    return of_independent_entries(module, (x,), kwargs, ["x"], [[["x", place]] for place in places])


class TestIndependentEntries:
    def test_rows_that_are_computed_by_themselves_are_items(self) -> None:
        found = independent(Rows(), torch.randn(5, 6), 0, scale=2.0)
        assert found is not None
        assert found.items == 5
        assert "dimension 0 of x" in found.source
        assert independent(nn.LSTM(6, 4), torch.randn(9, 2, 6), 1) is not None, "the batch is the second dimension"

    @pytest.mark.parametrize("module", [Causal(), Attention(), Pooled(), nn.LSTM(6, 4), nn.Conv1d(8, 8, 3)])
    def test_a_sequence_or_a_set_has_no_items(self, module: Any) -> None:
        torch.manual_seed(0)
        assert independent(module, torch.randn(8, 6), 0) is None

    def test_long_sequences_do_not_pass_because_one_entry_matters_little(self) -> None:
        torch.manual_seed(0)
        assert independent(Attention(), torch.randn(512, 6) * 0.01 + 1, 0) is None

    def test_features_are_no_items(self) -> None:
        assert independent(Rows(), torch.randn(5, 6), 1) is None

    def test_where_two_dimensions_would_do_none_is_known(self) -> None:
        x = torch.randn(4, 5, 6)
        assert independent(nn.Linear(6, 2), x, 0) is not None
        assert independent(nn.Linear(6, 2), x, 0, 1) is None

    def test_one_entry_cannot_be_divided(self) -> None:
        assert independent(Rows(), torch.randn(1, 6), 0) is None

    def test_weights_of_few_bits_are_compared_with_their_rounding(self) -> None:
        torch.manual_seed(0)
        assert independent(Rows().bfloat16(), torch.randn(33, 6, dtype=torch.bfloat16), 0) is not None

    @given(st.integers(2, 9), st.integers(1, 4))
    @settings(max_examples=20)
    def test_the_number_is_the_size_of_the_dimension(self, rows: int, width: int) -> None:
        found = independent(nn.Linear(width, 3), torch.randn(rows, width), 0)
        assert found is not None
        assert found.items == rows


class Network(nn.Module):
    def __init__(self, unsqueezes: bool = False) -> None:
        super().__init__()
        self.convolution, self.last, self.unsqueezes = nn.Conv2d(3, 4, 3), nn.Linear(4, 2), unsqueezes
        self.calls = 0

    def forward(self, x: Any) -> Any:
        x = (x - 0.5) / 2
        y = self.convolution(x.unsqueeze(0) if self.unsqueezes else x)
        self.calls += 1
        return self.last(y.mean((-2, -1)))


class TestLayers:
    @pytest.mark.parametrize(
        ("module", "shape", "items"),
        [
            (Network(), (8, 3, 9, 9), 8),
            (nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 2)), (5, 6), 5),
            (nn.Conv1d(3, 2, 3), (7, 3, 9), 7),
            (nn.LSTM(6, 4), (64, 2, 6), 2),
            (nn.GRU(6, 4, batch_first=True), (64, 2, 6), 64),
            (nn.TransformerEncoderLayer(8, 2, 16), (10, 3, 8), 3),
            (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (10, 3, 8), 10),
        ],
    )
    def test_the_layer_that_gets_the_input_tells_its_batch(
        self, module: Any, shape: tuple[int, ...], items: int
    ) -> None:
        found = of_layers(module, (torch.randn(*shape),), {})
        assert found is not None
        assert found.items == items

    @pytest.mark.parametrize(
        ("module", "shape"),
        [
            (Network(), (3, 9, 9)),
            (Network(unsqueezes=True), (3, 9, 9)),
            (nn.LSTM(6, 4), (64, 6)),
            (nn.Linear(6, 2), (8, 6)),
            (nn.Linear(6, 2), (6,)),
            (nn.Sequential(nn.Flatten(), nn.Linear(6, 2)), (8, 6)),
            (nn.Embedding(9, 4), (8, 6)),
        ],
    )
    def test_an_image_a_sequence_or_features_have_no_batch(self, module: Any, shape: tuple[int, ...]) -> None:
        x = torch.randint(0, 9, shape) if isinstance(module, nn.Embedding) else torch.randn(*shape)
        assert of_layers(module, (x,), {}) is None

    def test_the_rest_of_the_call_is_not_made_and_nothing_is_left_behind(self) -> None:
        network = Network()
        of_layers(network, (torch.randn(8, 3, 9, 9),), {})
        assert network.calls == 0
        assert network.training
        assert not network.convolution._forward_pre_hooks


@pytest.mark.xdist_group("transformers")
def test_transformers_say_what_their_inputs_are() -> None:
    transformers: Any = pytest.importorskip("transformers")
    config = transformers.BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    bert, ids = transformers.BertModel(config), torch.ones(5, 7, dtype=torch.long)
    found = of_known_task(bert, signature_of(bert.forward, (), {"input_ids": ids, "attention_mask": ids}))
    assert found == Batch(5, "dimension 0 of input_ids, as transformers defines it")
    embeds = signature_of(bert.forward, (), {"inputs_embeds": torch.ones(3, 7, 16)})
    assert of_known_task(bert, embeds) == Batch(3, "dimension 0 of inputs_embeds, as transformers defines it")
    assert of_known_task(nn.Linear(7, 2), signature_of(nn.Linear(7, 2).forward, (torch.ones(5, 7),), {})) is None
