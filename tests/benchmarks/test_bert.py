"""Training BERT."""

from __future__ import annotations

import pytest
from shipped_benchmarks import checked_lines, load, prepare

torch = pytest.importorskip("torch")
bert = load("bert")

from workload import training  # noqa: E402


def test_it_computes_what_it_claims(tmp_path):
    assert prepare("bert", data=tmp_path) == tmp_path / "bert" / "tiny"
    assert len(checked_lines("bert", data=tmp_path)) == 3


@pytest.mark.long
def test_with_scores_of_hidden_tokens_alone_it_computes_what_it_claims(capsys, tmp_path):
    argv = ["--check", "--device", "cpu", "--threads", "1", "--data", str(tmp_path), "--scores", "hidden"]
    assert training.run(bert.options_of(argv), bert.make) == 0, capsys.readouterr().out


def test_tokens_are_hidden_as_the_public_model_was_trained():
    text = torch.arange(200 * 126).view(200, 126) % 256
    batch = bert.hide(text, 256, torch.Generator().manual_seed(0))
    assert batch.tokens.shape == (200, 128)
    assert batch.places.shape == batch.hidden.shape == (200, 19)  # 15 % of 128
    assert torch.all(batch.tokens[:, 0] == bert.CLS)
    assert torch.all(batch.tokens[:, -1] == bert.SEP)
    assert torch.equal(text.gather(1, batch.places - 1) + bert.FIRST, batch.hidden)
    assert all(len(row.unique()) == 19 for row in batch.places)
    shown = batch.tokens.gather(1, batch.places)
    masked, same = (shown == bert.MASK).float().mean(), (shown == batch.hidden).float().mean()
    assert float(masked) == pytest.approx(0.8, abs=0.02)
    assert float(same) == pytest.approx(0.1, abs=0.02)
    kept = torch.ones_like(batch.tokens, dtype=torch.bool).scatter(1, batch.places, False)[:, 1:-1]
    assert torch.equal(batch.tokens[:, 1:-1][kept], text[kept] + bert.FIRST)


def test_the_loss_is_that_of_hidden_tokens_however_many_are_scored(tmp_path):
    options = bert.options_of(["--data", str(tmp_path), "--dropout", "0"])
    made = bert.make(options, torch.device("cpu"))
    assert made.items == options.batch_size  # sequences
    batch = made.batches[0]
    with torch.no_grad():
        at_all, at_hidden = bert.loss_at_all(made.model, batch), bert.loss_at_hidden(made.model, batch)
    assert torch.allclose(at_all, at_hidden, atol=1e-5)


def test_our_tokens_fit_into_the_vocabulary():
    for size, (_, symbols) in bert.tokens.SIZES.items():
        assert bert.FIRST + symbols <= bert.shape_of("bert-base", size).vocabulary
