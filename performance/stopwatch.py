"""The rate that a run tells beside a stopwatch in the program: 60 instrumented loops and 20 training scripts.

    python performance/stopwatch.py [--quick] [--only WORDS] [--device cuda]

Each program times its own loop with `time.perf_counter` and writes its rate down; `bw run --stop never` measures the same steps and
tells its own. Bar: within 1 % in at least 95 % of the programs, on a machine whose load is below 2; the others are named.
`--quick`: every fifth. `--only`: those whose name contains all words. `--device`: where the training scripts compute.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
WITHIN = 0.01
SHARE = 0.95

LENGTHS = {
    "50 us": "busy(50e-6)",
    "500 us": "busy(500e-6)",
    "2 ms": "time.sleep(0.002)",
    "10 ms": "time.sleep(0.010)",
    "20 ms, uneven": "time.sleep(0.005 if step % 4 else 0.065)",
}
LOOPS = {
    "a list": "for step in iterate('train', list(range(N)), batch_size=4): WORK",
    "a generator": "for step in iterate('train', (i for i in range(N)), batch_size=4): WORK",
    "batches that have a size": "for step, batch in enumerate(iterate('train', [[1, 2, 3, 4]] * N, batch_size=len)): WORK",
    "sizes from a function": "for step in iterate('train', range(N), batch_size=lambda batch: 4): WORK",
    "a loss in each step": "for step in iterate('train', range(N), batch_size=4): WORK; give(loss=0.5)",
    "epochs": "for epoch in range(4):\n    for step in iterate('train', range(N // 4), batch_size=4): WORK",
    "waiting for data": "def slow():\n    for i in range(N):\n        time.sleep(0.001)\n        yield i\nfor step in iterate('train', slow(), batch_size=4): WORK",
    "left by break": "for step in iterate('train', range(10 * N), batch_size=4):\n    WORK\n    if step == N - 1: break",
    "by next": "batches = iter(iterate('train', range(N), batch_size=4))\nfor step in range(N):\n    next(batches)\n    WORK\nnext(batches, None)",
    "a loop inside": "for step in iterate('train', range(N), batch_size=4):\n    WORK\n    for i in iterate('inner', range(3)): pass",
    "asynchronous": "async def steps():\n    for i in range(N): yield i\nasync def main():\n    async for step in iterate('train', steps(), batch_size=4): WORK\nasyncio.run(main())",
    "in a thread": "def main():\n    for step in iterate('train', range(N), batch_size=4): WORK\nthread = threading.Thread(target=main); thread.start(); thread.join()",
}
LOOP = """
import asyncio, json, threading, time
from benchprobe import give, iterate

def busy(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until: pass

step, N = 0, {count}
began = time.perf_counter()
{loop}
rate = 4 * N / (time.perf_counter() - began)
open("own.json", "w").write(json.dumps(rate))
"""

TRAINING = """
import json, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
device = {device!r}
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(device)
data = TensorDataset(torch.randn(512, 64), torch.randint(0, 8, (512,)))
loss_of = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters())
EPOCHS, WORKERS = 8, dict(batch_size=8, num_workers=2)

def now():
    if device == "cuda": torch.cuda.synchronize()
    return time.perf_counter()

class Clock:
    spent, items, began, warm = 0.0, 0, 0.0, False
    def __enter__(self): self.began = now()
    def __exit__(self, *error): self.spent += now() - self.began
    def count(self, items):
        if self.warm: self.items += items
        else: self.warm, self.began = True, now()  # the first step is not recorded
clock = Clock()

def gradients(x, y):
    loss = loss_of(model(x.to(device)), y.to(device))
    loss.backward()
    if device == "cpu": time.sleep(0.002)
    return loss
def update(items=8):
    optimizer.step(); clock.count(items); optimizer.zero_grad()
def train(x, y): gradients(x, y); update()
def evaluate(loader):
    with torch.no_grad():
        for x, y in loader: model(x.to(device)); time.sleep(0.003)
{script}
open("own.json", "w").write(json.dumps(clock.items / clock.spent))
"""
EPOCH = (
    "for epoch in range(EPOCHS):\n    with clock:\n        for x, y in {loader}:\n            train(x, y)\n    {after}"
)
PLAIN = "loader = DataLoader(data, batch_size=8)\n"
TRAININGS = {
    "a loader": PLAIN + EPOCH.format(loader="loader", after=""),
    "shuffled, a checkpoint between": "loader = DataLoader(data, batch_size=8, shuffle=True)\n"
    + EPOCH.format(loader="loader", after="time.sleep(0.1)"),
    "workers": "loader = DataLoader(data, **WORKERS)\n" + EPOCH.format(loader="loader", after=""),
    "workers, a checkpoint between": "loader = DataLoader(data, **WORKERS)\n"
    + EPOCH.format(loader="loader", after="time.sleep(0.1)"),
    "workers that persist": "loader = DataLoader(data, **WORKERS, persistent_workers=True)\n"
    + EPOCH.format(loader="loader", after=""),
    "workers that persist, evaluation between": "loader = DataLoader(data, **WORKERS, persistent_workers=True)\nrest = DataLoader(data, batch_size=64)\n"
    + EPOCH.format(loader="loader", after="evaluate(rest)"),
    "a loader for each epoch": EPOCH.format(loader="DataLoader(data, batch_size=8)", after=""),
    "workers for each epoch, evaluation between": EPOCH.format(
        loader="DataLoader(data, **WORKERS)", after="evaluate(DataLoader(data, batch_size=64))"
    ),
    "one epoch with workers": "EPOCHS = 1\ndata = torch.utils.data.ConcatDataset([data] * 8)\nloader = DataLoader(data, **WORKERS)\n"
    + EPOCH.format(loader="loader", after=""),
    "evaluation in mid-epoch": PLAIN
    + "rest = DataLoader(data, batch_size=64)\nfor epoch in range(EPOCHS):\n    with clock:\n        for number, (x, y) in enumerate(loader):\n            train(x, y)\n            if number == 30:\n                before = now()\n                evaluate(rest)\n                clock.spent -= now() - before",
    "left by break": "loader = DataLoader(data, **WORKERS)\nfor epoch in range(EPOCHS):\n    with clock:\n        for number, (x, y) in enumerate(loader, 1):\n            train(x, y)\n            if number == 50: break\n    time.sleep(0.05)",
    "left by break at the next batch": PLAIN
    + "for epoch in range(EPOCHS):\n    with clock:\n        for number, (x, y) in enumerate(loader):\n            if number == 50: break\n            train(x, y)\n    time.sleep(0.05)",
    "one iterator for each batch": PLAIN
    + "with clock:\n    for step in range(EPOCHS * 64):\n        train(*next(iter(loader)))",
    "an endless iterator": PLAIN
    + "batches = iter(loader)\nwith clock:\n    for step in range(EPOCHS * 64):\n        try:\n            batch = next(batches)\n        except StopIteration:\n            batches = iter(loader)\n            batch = next(batches)\n        train(*batch)",
    "a batch ahead": PLAIN
    + "def ahead(loader):\n    batches = iter(loader)\n    batch = next(batches)\n    for following in batches:\n        yield batch\n        batch = following\n    yield batch\n"
    + EPOCH.format(loader="ahead(loader)", after="time.sleep(0.05)"),
    "gradients of four batches": PLAIN
    + "for epoch in range(EPOCHS):\n    with clock:\n        for number, (x, y) in enumerate(loader, 1):\n            gradients(x, y)\n            if number % 4 == 0: update(32)",
    "two optimizers": PLAIN
    + "other = torch.optim.SGD(model.parameters(), 1e-4)\nfor epoch in range(EPOCHS):\n    with clock:\n        for x, y in loader:\n            train(x, y)\n            gradients(x, y)\n            other.step()",
    "the loss read and logged": PLAIN
    + "log = []\nfor epoch in range(EPOCHS):\n    with clock:\n        for x, y in loader:\n            loss = gradients(x, y)\n            update()\n            log.append(loss.item())\n            time.sleep(0.001)",
    "no loader": "x, y = data[:8]\nwith clock:\n    for step in range(EPOCHS * 64):\n        gradients(x, y)\n        update(1)",
    "no loader, evaluation between": "x, y = data[:8]\nrest = [data[:64]] * 8\nfor epoch in range(EPOCHS):\n    model.train()\n    with clock:\n        for step in range(64):\n            gradients(x, y)\n            update(1)\n    model.eval()\n    evaluate(rest)",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every fifth program")
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="programs whose name contains all words")
    parser.add_argument("--device", default="cpu", help="where the training scripts compute")
    options = parser.parse_args()
    programs = _programs(options.device)
    chosen = {name: text for name, text in programs.items() if all(word in name for word in options.only)}
    if options.quick:
        chosen = dict(list(chosen.items())[::5])
    print(f"load {os.getloadavg()[0]:.1f}; told ÷ stopwatch:")
    ratios = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in chosen.items():
            ratios[name] = _ratio(Path(folder), name, text)
            print(f"{ratios[name]:8.4f}  {name}", flush=True)
    missed = [name for name, ratio in ratios.items() if not abs(ratio - 1) <= WITHIN]
    met = len(missed) <= (1 - SHARE) * len(ratios)
    print(f"within 1 %: {len(ratios) - len(missed)} of {len(ratios)}: {'met' if met else 'missed'}")
    return int(not met)


def _programs(device: str) -> dict[str, str]:
    found = {}
    for length, work in LENGTHS.items():
        for form, loop in LOOPS.items():
            count = 4000 if length == "50 us" else 1000 if length == "500 us" else 400 if length == "2 ms" else 100
            found[f"loop, {length}, {form}"] = LOOP.format(count=count, loop=loop.replace("WORK", work))
    if importlib.util.find_spec("torch") is not None:
        for form, script in TRAININGS.items():
            found[f"training, {form}"] = TRAINING.format(device=device, script=script)
    return found


def _ratio(folder: Path, name: str, text: str) -> float:
    """The rate that is told ÷ the script's own; NaN if it failed."""
    script = folder / "program.py"
    script.write_text(text)
    sort, warmup = ("training", "1") if name.startswith("training") else ("loop", "0")
    words = ["run", script.name, "--as", sort, "--stop", "never", "--warmup", "0" if sort == "loop" else warmup]
    words = [sys.executable, "-m", "benchwright", *words, "--base", "base", "--python", sys.executable, "--json"]
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True)
    body = json.loads(done.stdout or "{}")
    if done.returncode or not body:
        print(f"{name}: {done.stdout[-500:]}{done.stderr[-500:]}", file=sys.stderr)
        return float("nan")
    own = json.loads((folder / "own.json").read_text())
    told = next(m["value"] for m in body["results"][0]["metrics"] if m["metric"] == "rate")
    return float(told) / float(own)


if __name__ == "__main__":
    sys.exit(main())
