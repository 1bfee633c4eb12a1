"""Whole generations: found beside the single calls, their tokens counted, their first token timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from benchmodels.check.reference import call
from benchmodels.measure.generation import (
    new_tokens,
    refuse_unread,
    timed_calls,
    whole_generation,
    with_results_read,
)
from benchmodels.measure.work import count_work
from benchmodels.runtimes.base import Captured, RuntimeOptions, Unsupported
from benchmodels.runtimes.torch_eager import TorchEager

WRITER = """
class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 11)

    def forward(self, ids):
        return self.table(ids)

    def generate(self, ids, new=4):
        for _ in range(new):
            ids = torch.cat([ids, self(ids)[:, -1].argmax(-1, keepdim=True)], 1)
        return ids

writer = Writer().eval()
"""


def test_a_generation_is_found_beside_the_calls_it_makes(found: Callable[..., Any]) -> None:
    seen = found(WRITER + "for _ in range(3):\n    writer.generate(torch.ones(2, 3, dtype=torch.long), new=2)\n")
    whole = seen["Writer.generate"]
    assert (whole["method"], whole["calls"], whole["items"], whole["reason"]) == ("generate", 3, None, None)
    assert [(i["name"], i.get("shape"), i.get("value")) for i in whole["inputs"]] == [
        ("ids", [2, 3], None),
        ("new", None, "2"),
    ]
    assert [(m["inputs"][0]["shape"], m["calls"], m["method"]) for m in seen.all("Writer")] == [
        ([2, 3], 3, ""),
        ([2, 4], 3, ""),
    ]


def test_counting_a_generation_makes_no_calls_of_the_program(under_discovery: Callable[..., Any]) -> None:
    """A greedy loop has the same calls whether its arithmetic is counted or not."""
    program = "import torch\nfrom torch import nn\ntorch.manual_seed(1)\n" + WRITER
    program += "writer.generate(torch.ones(1, 3, dtype=torch.long), new=6)\n"
    plain, counted = (under_discovery(program, count_work=count, forked=True) for count in (False, True))
    identities = [{event["identity"] for event in each.all("model")} for each in (plain, counted)]
    assert identities[0] == identities[1]
    (whole,) = {e["flops_note"] for e in counted.all("model") if e["method"] == "generate"}
    assert "positional argument" not in (whole or ""), "what is counted is the generation, not one call of the model"


def test_other_lengths_are_other_generations(found: Callable[..., Any]) -> None:
    seen = found(WRITER + "for new in (2, 3, 2):\n    writer.generate(torch.ones(1, 3, dtype=torch.long), new=new)\n")
    assert [(m["inputs"][1]["value"], m["calls"]) for m in seen.all("Writer.generate")] == [("2", 2), ("3", 1)]


def test_a_generation_that_fails_is_told_as_one(found: Callable[..., Any]) -> None:
    seen = found(WRITER + "try:\n    writer.generate(torch.full((1, 2), 99))\nexcept IndexError:\n    pass\n")
    assert "IndexError" in seen["Writer.generate"]["reason"]


@pytest.mark.parametrize(
    ("rows", "prompt", "ends", "expected"),
    [
        ([[5, 6, 7, 8]], 2, [2], (2, 2)),
        ([[5, 6, 7, 2, 0, 0], [5, 6, 7, 8, 9, 2]], 2, [2], (6, 4)),  # the first ends early; the rest of it is padding
        ([[5, 6, 7, 8, 9, 9], [5, 6, 7, 8, 9, 9]], 2, [], (8, 4)),
        ([[5, 6, 2, 0], [5, 6, 3, 0]], 2, [2, 3], (2, 1)),
    ],
)
def test_tokens_are_counted_from_the_prompt_to_the_end_of_each_sequence(
    torch: Any, rows: list[list[int]], prompt: int, ends: list[int], expected: tuple[int, int]
) -> None:
    sequences = torch.tensor(rows)
    module = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=ends or None))
    assert new_tokens(module, sequences, (sequences[:, :prompt],), {}) == expected
    assert new_tokens(module, sequences, (), {"input_ids": sequences[:, :prompt]}) == expected


def test_a_decoder_begins_with_one_token_and_embeddings_are_not_repeated(torch: Any) -> None:
    decoder = SimpleNamespace(config=SimpleNamespace(is_encoder_decoder=True, eos_token_id=1))
    assert new_tokens(decoder, torch.tensor([[0, 5, 6, 1]]), (torch.tensor([[0, 5]]),), {}) == (3, 3)
    assert new_tokens(SimpleNamespace(), torch.tensor([[4, 5, 6]]), (), {"inputs_embeds": torch.ones(1, 9, 4)}) == (
        3,
        3,
    )
    assert new_tokens(SimpleNamespace(), torch.ones(1, 8), (), {}) == (None, None)  # a waveform


def test_the_first_token_is_known_when_the_models_first_call_ends(torch: Any) -> None:
    class Slow(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, ids: Any) -> Any:
            time.sleep(0.05 if ids.shape[1] == 2 else 0.01)
            return ids[:, -1:]

        def generate(self, ids: Any) -> Any:
            for _ in range(4):
                ids = torch.cat([ids, self(ids)], 1)
            return ids

    whole = whole_generation(Slow().eval())
    session = TorchEager().load(Captured(whole, (torch.ones(1, 2, dtype=torch.long),), {}), RuntimeOptions())
    try:
        began = time.perf_counter()
        session.run(session.prepare(Captured(whole, (torch.ones(1, 2, dtype=torch.long),), {})))
        took = time.perf_counter() - began
        (call,) = timed_calls(session) or []
    finally:
        session.close()
    assert (call.tokens, call.longest) == (4, 4)
    assert call.first_s is not None
    assert 0.05 <= call.first_s < call.whole_s <= took
    assert call.whole_s - call.first_s >= 0.03  # three more calls
    assert call.between_s is not None
    assert len(call.between_s) == 3
    assert min(call.between_s) >= 0.01
    assert sum(call.between_s) <= call.whole_s - call.first_s


def test_a_generation_is_no_model_for_a_file(torch: Any, tmp_path: Any) -> None:
    from benchmodels.build.builder import ModelBuilder
    from benchmodels.reports import Reports
    from benchmodels.runtimes.registry import runtime_named
    from benchmodels.settings import ModelSettings

    told: list[dict[str, Any]] = []
    settings = ModelSettings(mode="build", identity="x", builds=str(tmp_path), runtime="onnxruntime")
    whole = whole_generation(torch.nn.Linear(2, 2))
    ModelBuilder(settings, runtime_named("onnxruntime"), Reports(told.append)).build(Captured(whole, (), {}))
    (failure,) = [event for event in told if event["event"] == "failure"]
    assert failure["kind"] == "unsupported"
    assert "--runtime torch-eager" in failure["text"]


def test_a_forward_that_yields_is_read_to_its_end(torch: Any) -> None:
    """A call of a generator computes nothing: unread, it would take microseconds."""

    class Yielding(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            for _ in range(3):
                x = self.layer(x)
                yield x

    net, x = Yielding(), torch.ones(2, 4)
    plain = torch.nn.Linear(4, 4)
    assert with_results_read(plain) is plain
    whole = with_results_read(net)
    session = TorchEager().load(Captured(whole, (x,), {}, ("x",)), RuntimeOptions())
    try:
        outputs = session.outputs(session.run(session.prepare(Captured(whole, (x,), {}, ("x",)))))
    finally:
        session.close()
    expected = net.layer(net.layer(net.layer(x))).detach().numpy()
    assert len(outputs) == 3
    assert list(outputs.values())[-1] == pytest.approx(expected, abs=1e-6)
    assert len(call(net, (x,), {})) == 3
    assert count_work(net, (x,), {}).flops == 3 * count_work(net.layer, (x,), {}).flops


async def _later() -> None:
    """Never awaited."""


@pytest.mark.parametrize(("result", "kind"), [(map(abs, [1]), "map"), (_later(), "coroutine"), (iter([1]), "iterator")])
def test_what_computes_only_when_it_is_read_is_not_measured(result: Any, kind: str) -> None:
    with pytest.raises(Unsupported, match=f"returns a .*{kind}, which computes when it is read"):
        refuse_unread(result)
