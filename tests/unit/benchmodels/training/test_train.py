"""Real training scripts, unchanged, against a stopwatch of their own."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from forked_python import ForkedPython

pytest.importorskip("torch")
pytestmark = pytest.mark.xdist_group("training")

SOURCE = Path(__file__).parents[4] / "src"
START = """
import sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
model = torch.nn.Linear(16, 4)
data = TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))
loss_of = torch.nn.CrossEntropyLoss()
"""


class Trained:
    """What one run of a script left in the stream."""

    def __init__(self, code: int, output: str, errors: str, events: list[dict[str, Any]]) -> None:
        self.code, self.output, self.errors = code, output, errors
        chunks = [event for event in events if event["event"] == "steps"]
        self.step_s = [ns / 1e9 for chunk in chunks for ns in chunk["step_ns"]]
        self.wait_s = [ns / 1e9 for chunk in chunks for ns in chunk["wait_ns"]]
        self.items = [item for chunk in chunks for item in _each(chunk)]
        self.losses = [value for chunk in chunks for value in chunk.get("given", {}).get("loss", [[], []])[1]]
        self.messages = [event["text"] for event in events if event["event"] in ("message", "training")]
        self.ended = [event["how"] for event in events if event["event"] == "loop_end"]


def _each(chunk: dict[str, Any]) -> list[int | None]:
    items = chunk.get("items")
    return items if isinstance(items, list) else [items] * len(chunk["step_ns"])


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedPython]:
    """With torch's compiler, which every optimizer imports."""
    python = ForkedPython(tmp_path_factory.mktemp("python") / "site", "torch._dynamo")
    yield python
    python.close()


@pytest.fixture
def trained(tmp_path: Path, python: ForkedPython) -> Any:
    def run(script: str, **config: Any) -> Trained:
        path, stream = tmp_path / "train.py", tmp_path / "stream"
        path.write_text(START + textwrap.dedent(script))
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCE),
            "BENCHPROBE_CONFIG": json.dumps({"stream": str(stream), "models": {"mode": "train"}, **config}),
        }
        done = python.run(str(path), env=environment, cwd=tmp_path)
        events = [json.loads(line) for line in stream.read_text().splitlines()]
        return Trained(done.returncode, done.stdout, done.stderr, events)

    return run


def test_epochs_with_evaluation_between_them_agree_with_a_stopwatch_round_the_training(trained):
    """The stopwatch is read on both sides of what begins and ends a step, so a busy machine widens what it allows."""
    found = trained("""
        train, rest = DataLoader(data, batch_size=8), DataLoader(data, batch_size=32)
        optimizer = torch.optim.AdamW(model.parameters())
        least = most = 0
        for epoch in range(3):
            first = time.perf_counter()
            for number, (x, y) in enumerate(train):
                if number == 0:
                    after = time.perf_counter()
                time.sleep(0.01)
                loss = loss_of(model(x), y)
                loss.backward()
                before = time.perf_counter()
                optimizer.step()  # within it a step ends, and is recorded
                if epoch == number == 0:
                    first = before  # its first step is not recorded
                else:
                    least += before - after
                after = time.perf_counter()
                optimizer.zero_grad()
            most += time.perf_counter() - first
            for x, y in rest:
                time.sleep(0.1)
        print([least, most])
    """)
    assert found.code == 0, found.errors
    assert len(found.step_s) == 3 * 8 - 1
    least, most = json.loads(found.output)
    assert 0.99 * least <= sum(found.step_s) <= 1.01 * most
    assert set(found.items) == {8}
    assert len(found.losses) == 23
    assert "training steps counted at AdamW.step(); one batch a step from a DataLoader" in found.messages


def test_accumulated_and_scaled_gradients_with_two_optimizers(trained):
    found = trained("""
        loader, scaler = DataLoader(data, batch_size=8), torch.amp.GradScaler("cpu", init_scale=1024.0)
        critic = torch.nn.Linear(16, 1)
        first = torch.optim.SGD(model.parameters(), 0.0)
        second = torch.optim.Adam(critic.parameters())
        told = []
        for epoch in range(2):
            for number, (x, y) in enumerate(loader, start=1):
                loss = loss_of(model(x), y)
                scaler.scale(loss).backward()
                if number % 4 == 0:
                    told.append(loss.item())
                    scaler.step(first); scaler.update(); first.zero_grad()
                    critic(x).mean().backward(); second.step()
        print(told)
    """)
    assert found.code == 0, found.errors
    assert found.items == [32, 32, 32]
    assert found.losses == pytest.approx(json.loads(found.output)[1:])  # as computed, not as scaled
    assert any("other optimizers step too: Adam" in text for text in found.messages)


def test_waiting_for_slow_data_is_told_apart_from_the_work(trained):
    found = trained("""
        slept = []
        class Slow(torch.utils.data.Dataset):
            def __len__(self): return 64
            def __getitem__(self, index):
                began = time.perf_counter()
                time.sleep(0.003)
                slept.append(time.perf_counter() - began)
                return data[index]
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        batches, waited = iter(DataLoader(Slow(), batch_size=8)), []
        for step in range(8):
            began = time.perf_counter()
            x, y = next(batches)
            waited.append(time.perf_counter() - began)
            loss_of(model(x), y).backward(); optimizer.step()
            time.sleep(0.02)
        print([sum(slept[8:]), sum(waited[1:])])
    """)
    assert found.code == 0, found.errors
    least, most = json.loads(found.output)
    assert (
        0.99 * least <= sum(found.wait_s) <= 1.01 * most
    )  # what watching takes lies outside of the script's stopwatch
    assert sum(found.step_s) - sum(found.wait_s) > 7 * 0.02


def test_a_long_training_is_ended_as_soon_as_enough_is_measured(trained):
    found = trained(
        """
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for step in range(10 ** 9):
            x, y = data[:8]
            loss_of(model(x), y).backward(); optimizer.step()
        """,
        warmup={"steps": 5},
        stop={"steps": 20},
    )
    assert found.code == 0, found.errors
    assert (len(found.step_s), found.ended) == (25, ["stopped"])
    assert any("the items of a step are unknown" in text for text in found.messages)


def test_a_loop_of_the_scripts_own_is_measured_once(trained):
    found = trained("""
        import benchprobe
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for x, y in benchprobe.iterate("train", [data[:8]] * 5, batch_size=8):
            loss_of(model(x), y).backward(); optimizer.step()
    """)
    assert found.code == 0, found.errors
    assert found.items == [8] * 5
    assert found.messages == ["training steps counted by the script's own loop 'train'"]


def test_a_script_that_does_not_train_says_so_and_one_that_fails_fails(trained):
    found = trained("raise SystemExit(3)")
    assert found.code == 3
    assert any("no optimizer stepped" in text for text in found.messages)
