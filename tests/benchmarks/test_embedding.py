"""Sentences to vectors."""

from __future__ import annotations

import pytest
from shipped_benchmarks import checked_lines, load, prepare

torch = pytest.importorskip("torch")
embedding = load("embedding")


def test_it_computes_what_it_claims(tmp_path):
    assert prepare("embedding", data=tmp_path) == tmp_path / "embedding" / "tiny"
    assert len(checked_lines("embedding", data=tmp_path)) == 4


def test_sentences_are_filled_up():
    text = torch.arange(300).view(10, 30) % 256
    batch = embedding.fill_up(text, torch.Generator().manual_seed(0))
    lengths = batch.real.sum(1)
    assert 8 <= int(lengths.min()) < int(lengths.max()) <= 30
    for row, length in enumerate(lengths.tolist()):
        assert batch.tokens[row, 0] == embedding.CLS
        assert batch.tokens[row, length - 1] == embedding.SEP
        assert torch.all(batch.tokens[row, length:] == embedding.PAD)
        assert torch.equal(batch.tokens[row, 1 : length - 1], text[row, 1 : length - 1] + embedding.FIRST)


@pytest.fixture
def made(tmp_path):
    torch.manual_seed(0)
    inference = embedding.make(embedding.options_of(["--data", str(tmp_path)]), torch.device("cpu"))
    inference.model.eval()
    return inference


def test_what_sentences_are_filled_up_with_must_not_count(made):
    batch = made.batches[0]

    class Unmasked(torch.nn.Module):
        def forward(self, tokens, mask):
            return made.model(tokens)

    with torch.inference_mode():
        found = made.answer(made.model, batch)
        assert made.right(found)
        assert not made.right(embedding.embed(Unmasked(), batch))
        everything = embedding.Batch(batch.tokens, torch.ones_like(batch.real))
        assert not made.right(embedding.embed(made.model, everything))
        assert not made.right(2 * found)
        assert not made.right(found[:1].expand_as(found))


def test_items_are_sentences_and_checks_are_done_without_rounding(made):
    assert made.items == 16
    assert embedding.options_of(["--size", "full"]).precision == "bf16"
    assert embedding.options_of(["--size", "full", "--check"]).precision == "fp32"
