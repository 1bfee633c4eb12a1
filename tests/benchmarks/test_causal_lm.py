"""Training a causal language model."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import pytest
from shipped_benchmarks import BENCHMARKS, ROOT, checked_lines, load, prepare

torch = pytest.importorskip("torch")
causal_lm = load("causal_lm")

from workload import training  # noqa: E402
from workload.models.language.attention import use_kernel  # noqa: E402


def test_it_computes_what_it_claims(tmp_path):
    folder = prepare("causal_lm", data=tmp_path)
    assert folder == tmp_path / "causal_lm" / "tiny"
    made = (folder / "tokens.bin").stat().st_mtime_ns
    assert len(checked_lines("causal_lm", data=tmp_path)) == 3
    assert (folder / "tokens.bin").stat().st_mtime_ns == made


@pytest.fixture
def any_kernel():
    yield
    use_kernel("sdpa")


# A processor without bf16 multiplies so slowly in it that a whole check takes minutes.
FEW_TOKENS = ("--batch-size", "4", "--sequence-length", "16")
long = partial(pytest.param, marks=pytest.mark.long)


@pytest.mark.usefixtures("any_kernel")
@pytest.mark.parametrize(
    ("argv", "steps"),
    [
        (("--model", "llama-1b"), 10),
        long(("--model", "llama-8b", "--checkpointing", "--attention", "math"), 30),
        long(("--precision", "bf16", "--attention", "flash", *FEW_TOKENS), 10),
        long(("--precision", "bf16", "--weights", "bf16", "--model", "llama-1b", *FEW_TOKENS), 10),
    ],
)
def test_other_ways_compute_what_they_claim(capsys, monkeypatch, tmp_path, argv, steps):
    monkeypatch.setattr(training, "CHECK_STEPS", steps)
    options = causal_lm.options_of(["--check", "--device", "cpu", "--threads", "1", "--data", str(tmp_path), *argv])
    assert training.run(options, causal_lm.make) == 0, capsys.readouterr().out


def test_the_batch_is_that_of_the_model_at_full_size_unless_given():
    full = causal_lm.options_of(["--size", "full", "--model", "llama-8b"])
    assert (full.batch_size, full.sequence_length, full.precision) == (2, 2048, "bf16")
    given = causal_lm.options_of(["--size", "full", "--batch-size", "3", "--sequence-length", "100"])
    assert (given.batch_size, given.sequence_length) == (3, 100)
    assert set(causal_lm.FULL) == set(causal_lm.DECODERS)


def test_a_sequence_longer_than_the_model_takes_is_refused(capsys):
    with pytest.raises(SystemExit):
        causal_lm.options_of(["--sequence-length", "257"])
    assert "256 is the longest at size tiny" in capsys.readouterr().err


def test_items_are_tokens(tmp_path):
    options = causal_lm.options_of(["--data", str(tmp_path), "--batch-size", "3", "--sequence-length", "10"])
    made = causal_lm.make(options, torch.device("cpu"))
    assert made.items == 30
    assert {tuple(batch.shape) for batch in made.batches} == {(3, 11)}  # the last token is only foretold


@pytest.mark.long
def test_several_processes_train_together(tmp_path):
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "BENCHWRIGHT_DATA_DIR": str(tmp_path),
    }
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [str(BENCHMARKS / "causal_lm" / "main.py"), "--device", "cpu", "--steps", "3", "--model", "llama-1b"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
