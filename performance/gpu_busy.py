"""On a GPU: how much of the time models are being measured, and what a further model costs, with `--overlap` and without.

    python performance/gpu_busy.py [TARGET…] [--models 20] [--rounds 1] [--stop 2s] [--overlap-only] [--quick] [--dry]

Runs of the same models of a zoo (by default `torchvision:*`, the first --models of them) alternate between `--overlap` and plain.
Shown as they end: each launch, what it spent on what, the share of the wall time in which a model was loaded on the GPU,
warmed up or measured (bar: 50 % over 20 models), the seconds between one model's time on the GPU and the next one's (bar:
1.5 s), and the ratio of latencies, overlapped ÷ plain. Whether what runs beside disturbs is told far better by
gpu_beside.py, which interleaves both within one process. --quick: six models, overlapped only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from _device import Phases, add_device_options, device_for, phases_of, tell_phases

import benchwright

BAR_SHARE, BAR_BETWEEN_S = 0.5, 1.5


class Made(NamedTuple):
    """One run: latency by model, seconds a model, share of the wall time on the GPU, seconds between two of them."""

    latency_s: dict[str, float]
    each_s: float
    on_gpu: float
    between_s: float


def run_once(targets: list[str], options: argparse.Namespace, device: str, *, overlap: bool) -> Made:
    words = [sys.executable, "-m", "benchwright", "run", *targets, "--device", device, "--scale", options.scale]
    words += ["--stop", options.stop, "--warmup", options.warmup, "--no-store", *(["--overlap"] if overlap else [])]
    name = "overlapped" if overlap else "plain"
    with tempfile.TemporaryDirectory() as base:
        began = time.monotonic()
        subprocess.run([*words, "--base", base], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=False)
        took_s = time.monotonic() - began
        runs = [path for path in Path(base, "runs").glob("*") if path.is_dir()]
        if not runs:
            sys.exit(f"no run was made: {' '.join(words)}")
        return told(runs[-1], name, took_s)


def told(run: Path, name: str, took_s: float) -> Made:
    latency = {
        result.benchmark.name: statistics.median(found.samples)
        for result in benchwright.load(str(run)).results
        for launch in result.launches
        if (found := launch.measurement("latency")) is not None
    }
    streams = list(run.glob("*.data"))
    found: list[Phases] = sorted(filter(None, map(phases_of, streams)), key=lambda one: one.device_from)
    if not found:
        sys.exit(f"{name}: none of {len(streams)} launches was measured")
    wall = max(one.ended for one in found) - min(one.began for one in found)
    between = [later.device_from - before.device_until for before, later in pairwise(found)]
    made = Made(latency, wall / len(found), sum(one.on_device for one in found) / wall, _median(between))
    print(
        f"{name:<11} {len(found)} of {len(streams)} models in {took_s:.0f} s: {made.each_s:.2f} s each, on the GPU "
        f"{made.on_gpu:.0%} of the time; {made.between_s:.2f} s between two, {max(between, default=0):.1f} s at most",
        flush=True,
    )
    tell_phases(found, name)
    return made


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")


def first_models(options: argparse.Namespace) -> list[str]:
    """`--models` names of the targets, as `bw find` lists them."""
    words = [sys.executable, "-m", "benchmodels.zoo", "list", *{t.partition(":")[0] for t in options.targets}]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    entries = [json.loads(line) for line in listed if line.startswith("{")]
    names = [f"{e['zoo']}:{e['name']}" for e in entries if e.get("task") == "vision"]
    names = [name for name in names if "quantized" not in name and not name.endswith(("_b5", "_b6", "_b7", "128gf"))]
    return names[: options.models]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=["torchvision:*"])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--stop", default="2s")
    parser.add_argument("--warmup", default="0.5s")
    parser.add_argument("--scale", default="full")
    parser.add_argument("--overlap-only", action="store_true", help="no plain runs")
    parser.add_argument("--quick", action="store_true", help="six models, overlapped only")
    add_device_options(parser)
    options = parser.parse_args()
    device = device_for(options)
    if device is None:
        return 0
    if options.quick:
        options.models, options.rounds, options.overlap_only = 6, 1, True
    targets = first_models(options) if any("*" in target for target in options.targets) else options.targets
    print(f"{len(targets)} models: {' '.join(targets)}", flush=True)
    kinds = (True,) if options.overlap_only else (True, False)
    rounds: dict[bool, list[Made]] = {kind: [] for kind in kinds}
    for number in range(options.rounds):
        for overlap in kinds if number % 2 == 0 else tuple(reversed(kinds)):
            rounds[overlap].append(run_once(targets, options, device, overlap=overlap))
    return judged(rounds)


def judged(rounds: dict[bool, list[Made]]) -> int:
    share, between_s = max(one.on_gpu for one in rounds[True]), min(one.between_s for one in rounds[True])
    if False in rounds:
        tell_ratios(rounds)
    met = share >= BAR_SHARE and between_s <= BAR_BETWEEN_S
    print(f"bar: {'met' if met else 'missed'} (on the GPU {share:.0%}, bar 50 %; {between_s:.2f} s between, bar 1.5 s)")
    return int(not met)


def tell_ratios(rounds: dict[bool, list[Made]]) -> None:
    ratios = {}
    for model in rounds[False][0].latency_s:
        pairs = [
            beside.latency_s[model] / alone.latency_s[model]
            for beside, alone in zip(rounds[True], rounds[False], strict=True)
            if beside.latency_s.get(model) and alone.latency_s.get(model)
        ]
        if pairs:
            ratios[model] = statistics.median(pairs)
    for model, ratio in sorted(ratios.items(), key=lambda each: -abs(each[1] - 1))[:5]:
        print(f"  {model:<60} {ratio:.4f}")
    middle = statistics.median(ratios.values()) if ratios else float("nan")
    print(f"latency, overlapped ÷ plain: median of {len(ratios)} models {middle:.4f}; one launch each, so noisy")


if __name__ == "__main__":
    sys.exit(main())
