"""Ordinary training scripts, measured as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine, metric
from onnx_models import looked_up

pytest.importorskip("torch")
pytestmark = pytest.mark.xdist_group("models")

# Of torch's compiler optimizers only ask that it stays away from them; to import it takes as long as all of torch.
NO_COMPILER = """
import sys, types
torch._dynamo = types.SimpleNamespace(disable=lambda function, *_, **__: function, graph_break=lambda: None)
sys.modules["torch._dynamo"] = torch._dynamo
"""
TRAINING = f"""
import time, torch
{NO_COMPILER}
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
model = torch.nn.Linear(16, 4)
data = TensorDataset(torch.randn(48, 16), torch.randint(0, 4, (48,)))
optimizer = torch.optim.AdamW(model.parameters())

def main(epochs=10 ** 6):
    for epoch in range(epochs):
        for x, y in DataLoader(data, batch_size=8):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            time.sleep(0.002)
"""


def test_a_training_script_is_measured_by_its_steps(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    training = TRAINING.replace(NO_COMPILER, "")  # as everybody writes it
    script("train.py", training + "main(20)\nprint('evaluated')\nimport atexit\natexit.register(print, 'saved')")
    body = bw.json("run", "train.py", "--stop", "60", "--warmup", "5")
    (result,) = body["results"]
    assert result["status"] == "ok"
    rate, steps = metric(body, "rate"), metric(body, "step_time")
    assert rate["unit"] == "items/s"
    assert 0.05 * 8 / steps["value"] < rate["value"] <= 8 / 0.002
    assert metric(body, "loss")["value"] > 0
    shown = bw("show", "last").stdout
    assert "· training steps counted at AdamW.step(); one batch a step from a DataLoader" in " ".join(shown.split())
    page = bw("report", "last", "--format", "html").stdout
    assert '<p class="note">Training steps counted at AdamW.step()' in page  # information, no warning
    assert "<li>training steps counted" not in page
    run = json.loads((bw.last_run() / "run.json").read_text())
    notes = run["results"][0]["launches"][0]["notes"]
    assert [n["severity"] for n in notes if "AdamW" in n["text"]] == ["info"]
    told = [n["text"] for n in notes if n["text"].startswith("stopped after")]
    assert told == [f"stopped after {66} steps; the rest of the training did not run"]
    assert "--stop never runs it whole" in " ".join(bw("report", "last", "--format", "markdown").stdout.split())
    assert bw("logs", "last").stdout == "evaluated\nsaved\n"


def test_a_script_that_stumbles_over_its_early_end_has_been_measured(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    script("train.py", TRAINING + "main(20)\nraise ValueError('no batches')")
    body = bw.json("run", "train.py", "--stop", "20", "--warmup", "5")
    assert body["results"][0]["status"] == "ok"
    notes = body["results"][0]["launches"][0]["notes"]
    (told,) = (n for n in notes if "failed after its training had been stopped early" in n["text"])
    assert "exit code 1" in str(told)
    assert "ValueError: no batches" in bw("logs", "last").stdout


LOGGED = f"""
import atexit, queue, threading
import torch, time
{NO_COMPILER}
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
log, lines = queue.Queue(), []

def deliver():  # as wandb and MLflow do: a thread that the interpreter waits for, until an exit handler ends it
    while (line := log.get()) is not None:
        lines.append(line)

def finish():
    log.put(None)
    sender.join()
    print("delivered", len(lines))

sender = threading.Thread(target=deliver, daemon=True)
sender.start()
atexit.register(finish)
model = torch.nn.Linear(16, 4)
data = TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
loader = DataLoader(data, batch_size=8, num_workers=2, persistent_workers=True)
for epoch in range(12):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        log.put(loss.item())
print("trained")
"""


def test_loggers_and_workers_of_loaders_end_cleanly(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    script("train.py", LOGGED)
    body = bw.json("run", "train.py", "--stop", "20", "--warmup", "5")
    assert body["results"][0]["status"] == "ok"
    (launch,) = body["results"][0]["launches"]
    assert launch["exit_code"] == 0
    assert not [note for note in launch["notes"] if "left behind" in note["text"] or "killed" in note["text"]]
    assert bw("logs", "last").stdout == "trained\ndelivered 26\n"  # and the first step, which is not recorded


def test_a_training_that_is_never_stopped_runs_whole(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    script("train.py", TRAINING + "main(5)\nprint('whole')")
    body = bw.json("run", "train.py", "--stop", "never", "--warmup", "5")
    steps = metric(body, "step_time")
    assert steps["value"] > 0.002, steps
    notes = [n["text"] for n in body["results"][0]["launches"][0]["notes"]]
    assert not [text for text in notes if "stop" in text]
    assert bw("logs", "last").stdout == "whole\n"
    script("train.py", TRAINING + "main(5)\nraise SystemExit(3)")
    bw("run", "train.py", "--stop", "never", code=1)


def test_a_model_cannot_be_called_for_ever(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    looked_up(bw.cwd)
    failed = bw("run", "tiny.onnx", "--shape", "ids=2x6", "--runtime", "onnxruntime", "--stop", "never", code=2)
    assert "--stop: never would call the model for ever" in " ".join(failed.stderr.split())
    script("model.py", "import torch\ntorch.nn.Linear(2, 2)(torch.ones(1, 2))")
    assert "'soon' is not a duration" in bw("run", "model.py", "--stop-grace", "soon", code=2).stderr


@pytest.mark.long
def test_training_in_a_module_is_seen_when_models_are_looked_for(
    bw: CommandLine, script: Callable[[str, str], Path]
) -> None:
    script("trainer.py", TRAINING)
    script("start.py", "import trainer\ntrainer.main(epochs=2)")
    body = bw.json("run", "start.py", "--warmup", "1")
    first, *others = body["results"]
    assert (first["benchmark"], first["status"]) == ("start.py", "ok")
    assert metric(body, "rate")["unit"] == "items/s"
    assert [r["status"] for r in others] == ["skipped"]  # its model is only ever called to be trained


def test_a_script_without_an_optimizer_says_what_to_do(bw: CommandLine, script: Callable[[str, str], Path]) -> None:
    script("none.py", "print(1)")
    body = bw.json("run", "none.py", "--as", "training", code=1)
    assert body["results"][0]["reason"] == "no_data"
    assert "--as models" in body["results"][0]["detail"]
