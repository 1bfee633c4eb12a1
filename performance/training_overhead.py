"""What it costs a training script to be watched, and whether its rate is what its own stopwatch says.

    python performance/training_overhead.py [--pairs N] [--quick] [--device cuda] [--blocks [--rounds N] [--source loader]]

One script trains a model, plainly, watched by `python -m benchmodels`, and by `bw run`, in turns, each time in a new process.
CPU time of the training thread and the time of the same steps are read by the script itself. On the processor the bar is 100 µs
of CPU a step, which is 1 % of a step of 10 ms. On a GPU, where steps take 1 to 10 ms: at most 1 % more time than plainly.
In both cases the rate told is within 1 % of the stopwatch of the script that was watched (medians of the rounds).

With --blocks one process trains, watched and not in turns of 100 steps, and the process' own CPU clock is read, which depends
little on what else the machine does. The bar is 10 µs of CPU a step, which is 1 % of a step of 1 ms; on a GPU, where other
threads of torch work too, it is 1 % of the time of a step.
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
from statistics import median
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "src"
PLAIN, HOOKS, RUN = "plain", "hooks", "bw run"
SCRIPT = """
import json, os, time, torch
from torch.utils.data import DataLoader, TensorDataset
device, width, depth, epochs, source = os.environ["TRAINING"].split()
width, depth, epochs, loads = int(width), int(depth), int(epochs), source == "loader"
torch.set_num_threads(1)
layers = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU()) for _ in range(depth)]
model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)).to(device)
data = TensorDataset(torch.randn(1600, width), torch.randint(0, 10, (1600,)))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(data, batch_size=16)
x, y = (part.to(device) for part in data[:16])

def now():
    if device == "cuda": torch.cuda.synchronize()
    return time.perf_counter()

def step(x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

def epoch():
    if loads:
        for x_, y_ in loader: step(x_.to(device), y_.to(device))
    else:
        for _ in range(100): step(x, y)

from torch.utils.data import dataloader
places = [(torch.autograd, "backward"), (dataloader.DataLoader, "__iter__"), (dataloader._BaseDataLoaderIter, "__next__")]
wrapped = [(place, name, getattr(place, name)) for place, name in places]
epoch()
if os.environ.get("BLOCKS"):  # watched and not, in turns
    from torch.optim.optimizer import _global_optimizer_post_hooks as hooks
    watched = dict(hooks)
    def block(is_watched):
        for place, name, function in wrapped:
            setattr(place, name, function if is_watched else function.__wrapped__)
        hooks.clear()
        hooks.update(watched if is_watched else {})
        began, cpu = now(), time.process_time()
        epoch()
        return (now() - began) * 1e4, (time.process_time() - cpu) * 1e4  # µs a step
    rounds = [(block(False), block(True), block(True), block(False)) for _ in range(epochs)]
    open("own.json", "w").write(json.dumps(rounds))
    raise SystemExit
cpu, began = time.thread_time(), now()
for _ in range(epochs): epoch()
ended = now()
told = {"cpu_us": (time.thread_time() - cpu) / epochs / 100 * 1e6, "step_us": (ended - began) / epochs / 100 * 1e6}
open("own.json", "w").write(json.dumps(told))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7, help="rounds")
    parser.add_argument("--quick", action="store_true", help="3 rounds, of fewer epochs")
    parser.add_argument("--blocks", action="store_true", help="in one process, watched and not in turns")
    parser.add_argument("--rounds", type=int, help="of four blocks each, with --blocks")
    parser.add_argument("--source", choices=("loader", "tensors"), help="where batches come from (default: both)")
    parser.add_argument("--device", default="cpu", help="where the script computes")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("no torch here: nothing measured")
        return 0
    rounds = 3 if options.quick else options.pairs
    sizes = [(128, 1, 4 if options.quick else 20)]
    if options.blocks:
        sizes = [(16, 1, 30 if options.quick else 300)]
    if options.device != "cpu":
        sizes = [(1024, 4, 20), (2048, 16, 8)] if not options.blocks else [(1024, 4, 80)]
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(SCRIPT)
        for width, depth, epochs in sizes:
            for source in (options.source,) if options.source else ("loader", "tensors"):
                words = [options.device, str(width), str(depth), str(options.rounds or epochs), source]
                if options.blocks:
                    missed += _blocks(Path(folder), words)
                    continue
                missed += _compared(Path(folder), words, rounds, on_gpu=options.device != "cpu")
    return int(missed > 0)


def _blocks(folder: Path, words: list[str]) -> int:
    """Prints one line; 1 if the bar was missed."""
    config = json.dumps({"stream": str(folder / "steps.stream"), "models": {"mode": "train"}})
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "BENCHPROBE_CONFIG": config, "TRAINING": " ".join(words)}
    subprocess.run([sys.executable, "-m", "benchmodels", "train.py"], cwd=folder, env=env | {"BLOCKS": "1"}, check=True)
    rounds = json.loads((folder / "own.json").read_text())
    added, low, high = _median_with_interval([(b[1] + c[1] - a[1] - d[1]) / 2 for a, b, c, d in rounds])
    same, *_ = _median_with_interval([d[1] - a[1] for a, b, c, d in rounds])
    ratio, ratio_low, ratio_high = _median_with_interval([(b[0] + c[0]) / (a[0] + d[0]) for a, b, c, d in rounds])
    step_us, cpu_us = (median(a[which] for a, *_ in rounds) for which in (0, 1))
    met = added <= 10 if words[0] == "cpu" else ratio <= 1.01
    print(
        f"{words[-1]}: {added:.1f} µs of CPU on top of {cpu_us:.0f} a step ({low:.1f} to {high:.1f}; plain − plain {same:+.1f}), ",
        end="",
    )
    again, *_ = _median_with_interval([d[0] / a[0] for a, b, c, d in rounds])
    print(
        f"watched ÷ plain {ratio:.4f} ({ratio_low:.4f} to {ratio_high:.4f}; plain ÷ plain {again:.4f}) of a step of {step_us:.0f} µs: "
        f"{'met' if met else 'missed'}",
        flush=True,
    )
    return int(not met)


def _median_with_interval(values: list[float]) -> tuple[float, float, float]:
    """With the order statistics that hold it in 95 % of cases."""
    ordered, n = sorted(values), len(values)
    reach = 0.98 * n**0.5
    return median(ordered), ordered[max(0, int(n / 2 - reach))], ordered[min(n - 1, int(n / 2 + reach))]


def _compared(folder: Path, words: list[str], rounds: int, *, on_gpu: bool) -> int:
    """Prints one line; 1 if a bar was missed."""
    found: dict[str, list[dict[str, float]]] = {PLAIN: [], HOOKS: [], RUN: []}
    for _ in range(rounds):
        for way, results in found.items():
            results.append(_run(folder, words, way))
    step_us = {way: median(r["step_us"] for r in results) for way, results in found.items()}
    cpu_us = {way: median(r["cpu_us"] for r in results) for way, results in found.items()}
    agreement = {way: median(r["told_rate"] * r["step_us"] / 1e6 for r in found[way]) for way in (HOOKS, RUN)}
    slower = {way: step_us[way] / step_us[PLAIN] - 1 for way in (HOOKS, RUN)}
    costs = max(slower.values()) <= 0.01 if on_gpu else max(cpu_us[w] - cpu_us[PLAIN] for w in slower) <= 100
    met = costs and all(abs(ratio - 1) <= 0.01 for ratio in agreement.values())
    print(f"{words[-1]}, a step of {step_us[PLAIN]:.0f} µs: ", end="")
    for way in slower:
        print(f"{way} {100 * slower[way]:+.2f} %, CPU {cpu_us[way] - cpu_us[PLAIN]:+.0f} µs, ", end="")
        print(f"told ÷ stopwatch {agreement[way]:.4f}; ", end="")
    print("met" if met else "missed", flush=True)
    return int(not met)


def _run(folder: Path, words: list[str], way: str) -> dict[str, float]:
    """What the script says of itself, and the rate in steps that was told after the first epoch."""
    stream = folder / "steps.stream"
    stream.unlink(missing_ok=True)
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "PYTHONPATH": path, "TRAINING": " ".join(words)}
    argv = [sys.executable, "train.py"]
    if way == HOOKS:
        env["BENCHPROBE_CONFIG"] = json.dumps({"stream": str(stream), "models": {"mode": "train"}})
        argv = [sys.executable, "-m", "benchmodels", "train.py"]
    if way == RUN:
        rules = ["--as", "training", "--stop", "never", "--warmup", "99", "--base", "base", "--python", sys.executable]
        argv = [sys.executable, "-m", "benchwright", "run", "train.py", *rules, "--json"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{way} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    own: dict[str, float] = json.loads((folder / "own.json").read_text())
    if way == HOOKS:
        own["told_rate"] = _rate_in(stream)
    if way == RUN:
        own["told_rate"] = 1 / _mean_step(json.loads(done.stdout))
    return own


def _rate_in(stream: Path) -> float:
    events = [json.loads(line) for line in stream.read_text().splitlines()]
    step_ns = [ns for e in events if e["event"] == "steps" for ns in e.get("device_ns") or e["step_ns"]]
    kept = step_ns[99:]  # the first epoch, less its first step, is not compared
    return len(kept) / sum(kept) * 1e9


def _mean_step(body: dict[str, Any]) -> float:
    rate = next(m for m in body["results"][0]["metrics"] if m["metric"] == "rate")
    return float(16 if rate["unit"] == "items/s" else 1) / float(rate["value"])


if __name__ == "__main__":
    sys.exit(main())
