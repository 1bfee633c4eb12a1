"""What it costs a training script to be watched, and whether its rate is what its own stopwatch says.

    python performance/training_overhead.py [--pairs N] [--quick]

One script trains a small model from a DataLoader, plainly and watched by `python -m benchmodels` in turns, each time in a new
process. CPU time of the training thread is read by the script itself around the same steps. Bar: at most 100 µs a step, which
is 1 % of a step of 10 ms; the rate within 1 % of the script's stopwatch (median of the pairs).
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

SOURCE = Path(__file__).resolve().parent.parent / "src"
SCRIPT = """
import json, sys, time, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(128, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
data = TensorDataset(torch.randn(1600, 128), torch.randint(0, 10, (1600,)))
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(data, batch_size=16)

def epoch():
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

epoch()
cpu, began = time.thread_time(), time.perf_counter()
epochs = int(sys.argv[1])
for _ in range(epochs):
    epoch()
print(json.dumps({"cpu_us": (time.thread_time() - cpu) / epochs / 100 * 1e6,
                  "rate": epochs * 1600 / (time.perf_counter() - began)}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7, help="runs of each kind")
    parser.add_argument("--quick", action="store_true", help="3 pairs of 4 epochs")
    options = parser.parse_args()
    if importlib.util.find_spec("torch") is None:
        print("no torch here: nothing measured")
        return 0
    pairs, epochs = (3, 4) if options.quick else (options.pairs, 20)
    added, agreement = [], []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(SCRIPT)
        for _ in range(pairs):
            plain, _ = _run(script, epochs, watched=False)
            own, reported = _run(script, epochs, watched=True)
            added.append(own["cpu_us"] - plain["cpu_us"])
            agreement.append(reported / own["rate"])
            print(
                f"a step {plain['cpu_us']:.0f} µs, watched {own['cpu_us']:.0f} µs; rate ÷ stopwatch {agreement[-1]:.4f}"
            )
    met = median(added) <= 100 and abs(median(agreement) - 1) <= 0.01
    print(
        f"watching adds {median(added):.0f} µs a step; rate ÷ stopwatch {median(agreement):.4f}: {'met' if met else 'missed'}"
    )
    return int(not met)


def _run(script: Path, epochs: int, *, watched: bool) -> tuple[dict[str, float], float]:
    """What the script says of itself, and the rate in the stream after the first epoch."""
    stream = script.with_suffix(".stream")
    stream.unlink(missing_ok=True)
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    words = [sys.executable, str(script), str(epochs)]
    if watched:
        env["BENCHPROBE_CONFIG"] = json.dumps({"stream": str(stream), "models": {"mode": "train"}})
        words[1:1] = ["-m", "benchmodels"]
    own = json.loads(subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)
    if not watched:
        return own, 0.0
    step_ns, items = [], []
    for line in stream.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "steps":
            count = len(event["step_ns"])
            step_ns += event["step_ns"]
            items += event["items"] if isinstance(event["items"], list) else [event["items"]] * count
    skip = 99  # the first epoch, less its first step
    return own, sum(items[skip:]) / sum(step_ns[skip:]) * 1e9


if __name__ == "__main__":
    sys.exit(main())
