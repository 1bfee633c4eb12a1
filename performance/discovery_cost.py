"""What looking for models costs the script that is looked at: CPU time under discovery ÷ plain.

A script with a transformers BERT (or, where that is not installed, an encoder of torch of the same size), run plainly and under
`python -m benchmodels` at once, whole processes from start to end, one of which is always stopped, in turns of a quarter of a
second; the median of the ratios counts. And a tiny training loop: blocks of steps with and without the hook in turn, in one process.

    python performance/discovery_cost.py [--quick]

Bars: at most 1.05 for the script, at most 1.10 for a step of the loop.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _turns import in_turns

SCRIPT_BAR, STEP_BAR = 1.05, 1.10
STAGES = ("start", "torch", "transformers", "build", "first call", *("call",) * 4, "end")

BERT = """
import json, sys, time
stamps = [time.process_time()]
import torch
stamps.append(time.process_time())
{build}
stamps.append(time.process_time())
with torch.no_grad():
    for _ in range(5):
        model(**inputs)
        stamps.append(time.process_time())
print(json.dumps(stamps))
"""
OF_TRANSFORMERS = """
from transformers import BertConfig, BertModel
stamps.append(time.process_time())
model = BertModel(BertConfig()).eval()
inputs = {"input_ids": torch.ones(1, 128, dtype=torch.long), "attention_mask": torch.ones(1, 128, dtype=torch.long)}
"""
OF_TORCH = """
layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
model, inputs = torch.nn.TransformerEncoder(layer, 12).eval(), {"src": torch.ones(1, 128, 768)}
"""
STEPS = """
import json, sys, time
import torch
from torch import nn
from benchmodels.discover.model_entries import HookOptions, Watcher
from benchmodels.hooks.imports import ImportWatch
from benchmodels.pytorch.hook import TorchHook
torch.set_num_threads(1)
model, loss_of = nn.Linear(10, 10), nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.ones(8, 10), torch.zeros(8, 10)
def steps(count):
    begin = time.process_time()
    for _ in range(count):
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
    return (time.process_time() - begin) / count
def under_hook(count):
    hook = TorchHook(Watcher(4, lambda entry, call: None), HookOptions(__file__, 0, True, print))
    hook.install(ImportWatch(print))
    steps(20)
    took = steps(count)
    hook.uninstall()
    return took
def plain(count):
    steps(20)
    return steps(count)
plain(500), under_hook(500)
pairs = []
for number in range(int(sys.argv[1])):
    if number % 2:
        a = plain(100); b = under_hook(100)
    else:
        b = under_hook(100); a = plain(100)
    pairs.append((a, b))
print(json.dumps(pairs))
"""


class Side:
    """One way to start a script."""

    def __init__(self, folder: Path, under_discovery: bool) -> None:
        self._command = [sys.executable, *(["-m", "benchmodels"] if under_discovery else [])]
        config = {"stream": str(folder / "stream.data"), "models": {"mode": "discover", "digest_weights": True}}
        self._environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)  # torch's bytecode is there; ours may be kept as well
        if under_discovery:
            self._environment["BENCHPROBE_CONFIG"] = json.dumps(config)

    def start(self, script: Path) -> subprocess.Popen[str]:
        command = [*self._command, str(script)]
        return subprocess.Popen(
            command, env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )


def stages_s(process: subprocess.Popen[str]) -> list[float]:
    """CPU time of each stage of the script, from the start of the process to its end."""
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the script ended with {process.returncode}")
    stamps = [0.0, *json.loads(printed.splitlines()[-1]), usage.ru_utime + usage.ru_stime]
    return [later - earlier for earlier, later in itertools.pairwise(stamps)]


def told(name: str, plain: float, found: float, ratio: float, bar: float) -> bool:
    """Prints both sides and their ratio; whether the bar is met."""
    print(f"{name:28} plain {plain:8.2f}   under discovery {found:8.2f}   ratio {ratio:.3f}   bar {bar}")
    return ratio <= bar


def whole_script(root: Path, rounds: int) -> bool:
    has_transformers = importlib.util.find_spec("transformers") is not None
    script = root / "model.py"
    script.write_text(BERT.replace("{build}", OF_TRANSFORMERS if has_transformers else OF_TORCH))
    sides = (Side(root, False), Side(root, True))
    stages_s(sides[1].start(script))  # fills the caches of both
    times: dict[Side, list[list[float]]] = {side: [] for side in sides}
    for number in range(rounds):
        order = sides if number % 2 else sides[::-1]
        processes = (order[0].start(script), order[1].start(script))
        in_turns(processes)
        for side, process in zip(order, processes, strict=True):
            times[side].append(stages_s(process))
    plain, found = ([sum(stages) for stages in times[side]] for side in sides)
    ratios = sorted(b / a for a, b in zip(plain, found, strict=True))
    name = "a transformers BERT, s" if has_transformers else "an encoder like BERT, s"
    met = told(name, statistics.median(plain), statistics.median(found), statistics.median(ratios), SCRIPT_BAR)
    print(f"  ratios of pairs: {', '.join(f'{ratio:.3f}' for ratio in ratios)}")
    for number, stage in enumerate(STAGES if has_transformers else []):
        more = statistics.median(b[number] - a[number] for a, b in zip(*times.values(), strict=True))
        print(f"  {stage:22} {more:+.3f}")
    return met


def step_of_a_loop(root: Path, blocks: int) -> bool:
    (root / "steps.py").write_text(STEPS)
    command = [sys.executable, str(root / "steps.py"), str(blocks)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    pairs = json.loads(done.stdout)
    ratio = statistics.median(found / plain for plain, found in pairs)
    plain, found = (statistics.median(side) * 1e6 for side in zip(*pairs, strict=True))
    return told("a step of a tiny loop, µs", plain, found, ratio, STEP_BAR)


def main() -> int:
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        met = [whole_script(Path(folder), 3 if quick else 11), step_of_a_loop(Path(folder), 100 if quick else 400)]
    print("the bars are met" if all(met) else "A BAR WAS MISSED")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
