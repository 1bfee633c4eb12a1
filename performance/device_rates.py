"""Whether the rate that `bw run` reports of a loop on a GPU is what the loop delivered, and its energy what the driver counts.

    python performance/device_rates.py [--quick]

Needs a CUDA device; without one it says so and measures nothing. A program does the same matrix products in two ways that
take turns: bare, and inside `iterate`, each block between two synchronisations and under its own stopwatch. Bars: the
reported rate is within 1 % of the stopwatch's around the probed blocks for steps of about 50 µs, 1 ms and 50 ms, and the
joules of an item within 3 % of the driver's own counter, read by the program around the same blocks, and of the power that
a thread of the program reads every 20 ms, integrated over them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

LOOP = """
import json, sys, threading, time, torch
from benchprobe import iterate
wanted_us, seconds, rounds = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
size = 1024 if wanted_us < 500 else 4096
a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
out = torch.empty_like(a)

def took(steps, batches, products):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in batches(steps):
        for _ in range(products):
            torch.mm(a, a, out=out)
    torch.cuda.synchronize()
    return time.perf_counter() - begin

took(2000 if size == 1024 else 200, range, 1)
one = took(2000 if size == 1024 else 200, range, 1) / (2000 if size == 1024 else 200)
products = max(1, round(wanted_us / 1e6 / one))
steps = max(20, int(seconds / rounds / (one * products)))

try:
    import pynvml
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
except Exception:
    gpu = None

def energy():
    return pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000 if gpu else float("nan")

watts, watching = [], threading.Event()

def watch():
    while watching.is_set():
        watts.append(pynvml.nvmlDeviceGetPowerUsage(gpu) / 1000)
        time.sleep(0.02)

probed = lambda count: iterate("train", range(count), batch_size=1)
bare_s, probed_s, joules, integral = 0.0, 0.0, 0.0, 0.0
for number in range(rounds):
    bare_s += took(steps, range, products)
    watching.set()
    thread = threading.Thread(target=watch)
    if gpu:
        thread.start()
    watts.clear()
    before = energy()
    seconds = took(steps, probed, products)
    joules += energy() - before
    watching.clear()
    if gpu:
        thread.join()
    probed_s += seconds
    integral += sum(watts) / len(watts) * seconds if watts else float("nan")
own = {"steps": steps * rounds, "bare_s": bare_s, "probed_s": probed_s, "joules": joules, "integral": integral}
print(json.dumps(own))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="2 s for each length of step, instead of 12: too short for joules"
    )
    seconds = 2 if parser.parse_args().quick else 12
    if importlib.util.find_spec("torch") is None or not __import__("torch").cuda.is_available():
        print("no GPU here: nothing measured")
        return 0
    worst = off = 0.0
    print(
        f"{'step':>10} {'reported':>14} {'stopwatch':>14} {'ratio':>8} {'bare ÷ probed':>14} {'J/item':>10} {'counter':>10} "
        f"{'integral':>10}"
    )
    for wanted_us in (50, 1_000, 50_000):
        with tempfile.TemporaryDirectory() as folder:
            rate, per_item, own = _measured(Path(folder), wanted_us, seconds)
        truth = own["steps"] / own["probed_s"]
        counter = own["joules"] / own["steps"]
        integral = own["integral"] / own["steps"]
        worst = max(worst, abs(rate / truth - 1))
        off = max(
            off, *(abs(per_item / known - 1) for known in (counter, integral) if not math.isnan(per_item / known)), 0
        )
        print(
            f"{own['probed_s'] / own['steps'] * 1e6:8.1f} µs {rate:12.2f}/s {truth:12.2f}/s {rate / truth:8.4f} "
            f"{own['bare_s'] / own['probed_s']:14.4f} {_joules(per_item)} {_joules(counter)} "
            f"{_joules(integral)}",
            flush=True,
        )
    print(f"bar 1 %: {'met' if worst <= 0.01 else 'missed'} (worst {worst:.2%})")
    print(f"bar 3 % for joules: {'met' if off <= 0.03 else 'missed'} (worst {off:.2%})")
    return int(worst > 0.01 or off > 0.03)


def _measured(folder: Path, wanted_us: float, seconds: float) -> tuple[float, float, dict[str, float]]:
    """The rate and the joules of an item that were reported, and what the program found itself."""
    (folder / "loop.py").write_text(LOOP)
    command = [sys.executable, "-m", "benchwright", "run", "--json", "--no-store", "--warmup", "0"]
    command += ["--", sys.executable, "loop.py", str(wanted_us), str(seconds), "2"]
    env = {**os.environ, "BENCHWRIGHT_BASE": str(folder / "base")}
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False)
    (result,) = json.loads(done.stdout)["results"]
    (log,) = (folder / "base" / "runs").glob("*/*.log*")
    own = json.loads(_text(log).strip().splitlines()[-1])
    found = {m["metric"]: m["value"] for m in result["metrics"] if not m["labels"].get("rank")}
    return found["rate"], found.get("energy.item", float("nan")), own


def _joules(value: float) -> str:
    return f"{'too short':>10}" if math.isnan(value) else f"{value:10.4g}"


def _text(log: Path) -> str:
    if log.suffix != ".gz":
        return log.read_text()
    import gzip

    return gzip.decompress(log.read_bytes()).decode()


if __name__ == "__main__":
    sys.exit(main())
