"""Fine-tuning through adapters."""

from __future__ import annotations

import pytest
from shipped_benchmarks import checked_lines, load, prepare

torch = pytest.importorskip("torch")
lora = load("lora")
adapters = load("lora", "adapters")

from workload import training  # noqa: E402
from workload.claims import counted_flops  # noqa: E402
from workload.models.language.attention import build, counting  # noqa: E402
from workload.models.language.decoder import Decoder  # noqa: E402
from workload.models.language.shapes import PUBLIC, shape_of  # noqa: E402

META = torch.device("meta")


def test_it_computes_what_it_claims(tmp_path):
    assert prepare("lora", data=tmp_path) == tmp_path / "lora" / "tiny"
    lines = checked_lines("lora", data=tmp_path)
    assert sum("trainable parameters" in line for line in lines) == 1


@pytest.mark.long
def test_frozen_weights_of_half_the_size_compute_what_they_claim(capsys, monkeypatch, tmp_path):
    argv = ["--check", "--device", "cpu", "--threads", "1", "--data", str(tmp_path), "--checkpointing"]
    # Few tokens and steps, since a processor without bf16 multiplies very slowly in it; of one batch, so that the loss
    # falls by what is learnt and not by what the next batch happens to hold.
    argv += ["--batch-size", "4", "--sequence-length", "16"]
    monkeypatch.setattr(training, "CHECK_STEPS", 10)
    monkeypatch.setattr(lora, "BATCHES", 1)
    options = lora.options_of([*argv, "--precision", "bf16", "--weights", "bf16"])
    assert training.run(options, lora.make) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "targets", "rank", "count"),
    [
        ("llama-1b", ("query", "value"), 8, 851_968),  # as peft counts them
        ("llama-1b", adapters.TARGETS, 16, 11_272_192),
        ("llama-8b", ("query", "value"), 8, 3_407_872),
        ("llama-8b", adapters.TARGETS, 16, 41_943_040),
    ],
)
def test_as_many_parameters_learn_as_in_the_public_library(model, targets, rank, count):
    assert adapters.trainable_parameters(PUBLIC[model], targets, rank) == count
    made = build(lambda: Decoder(PUBLIC[model]), META)
    adapters.adapt(made, targets, rank, 2 * rank)
    assert sum(p.numel() for p in made.parameters() if p.requires_grad) == count


SOME_TARGETS = [("query", "value"), ("value",), ("key",), ("output",), ("gate",), ("up", "down"), ("down",)]


@pytest.mark.parametrize(
    ("targets", "size"),
    [
        (adapters.TARGETS, "tiny"),
        *((some, "tiny") for some in SOME_TARGETS),
        pytest.param(("query", "down"), "full", marks=pytest.mark.long),
    ],
)
def test_arithmetic_of_frozen_weights_is_what_is_counted(targets, size):
    shape, length = shape_of("llama-1b", size), 128
    made = build(lambda: Decoder(shape), META)
    adapters.adapt(made, targets, 4, 8)
    text = torch.zeros(1, length, dtype=torch.long, device=META)
    with counting():
        counted = counted_flops(lambda: made(text).sum().backward())
    assert counted == length * adapters.training_flops(shape, length, targets, 4)


def test_adapters_begin_as_if_they_were_not_there_and_alone_learn():
    shape = shape_of("llama-1b", "tiny")
    torch.manual_seed(0)
    made = build(lambda: Decoder(shape), torch.device("cpu"))
    text = torch.arange(30).view(2, 15)
    before = made(text).detach()
    frozen = {name: p.clone() for name, p in made.named_parameters()}
    adapters.adapt(made, adapters.TARGETS, 4, 8)
    assert torch.equal(made(text), before)
    learning = [p for p in made.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=0.1)
    made(text).logsumexp(-1).sum().backward()
    optimizer.step()
    assert not torch.allclose(made(text), before, atol=1e-3)
    after = {name.replace(".base.", "."): p for name, p in made.named_parameters() if not p.requires_grad}
    assert after.keys() == frozen.keys()
    assert all(torch.equal(after[name], p) for name, p in frozen.items())
    assert len(learning) == 2 * len(adapters.TARGETS) * shape.layers


def test_what_cannot_be_is_refused(capsys):
    with pytest.raises(SystemExit):
        lora.options_of(["--targets", "query,head"])
    assert "no matrix is called head" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        lora.options_of(["--weights", "bf16"])
    assert "needs --precision bf16" in capsys.readouterr().err
