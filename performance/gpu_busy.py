"""On a GPU: how much of the time models are being measured, and whether starting up the next ones beside changes a number.

    python performance/gpu_busy.py [TARGET…] [--models 20] [--rounds 3] [--stop 2s] [--scale full] [--overlap-only]

Runs of the same models of a zoo (by default `torchvision:*`, the first --models of them) alternate between plain and
`--overlap`. Shown: the ratio of each model's median latency, overlapped ÷ plain (bar: the median of all within ± 1 %); the
share of the wall time, from the first launch's start to the last one's end, in which a model was loaded on the GPU, warmed
up or measured (bar: 50 % over 20 models), and the measured loops alone; the seconds a model took.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import benchwright

BAR_RATIO, BAR_SHARE = 0.01, 0.5


class Made(NamedTuple):
    """One run: latency by model, seconds a model, and shares of the wall time."""

    latency_s: dict[str, float]
    each_s: float
    in_loop: float
    on_gpu: float
    failed: int


def has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def run_once(targets: list[str], options: argparse.Namespace, base: Path, *, overlap: bool) -> Made:
    words = [sys.executable, "-m", "benchwright", "run", *targets, "--device", "cuda", "--scale", options.scale]
    words += ["--stop", options.stop, "--base", str(base), "--no-store", *(["--overlap"] if overlap else [])]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    runs = sorted((base / "runs").glob("*"), key=lambda run: run.stat().st_mtime_ns) if (base / "runs").is_dir() else []
    if not runs:
        sys.exit(f"{words} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return made_of(runs[-1])


def made_of(run: Path) -> Made:
    latency = {
        result.benchmark.name: statistics.median(found.samples)
        for result in benchwright.load(str(run)).results
        for launch in result.launches
        if (found := launch.measurement("latency")) is not None
    }
    began, ended, loops, held, failed, count = [], [], 0.0, 0.0, 0, 0
    for stream in run.glob("*.data"):
        events: list[dict[str, Any]] = [json.loads(line) for line in stream.read_text().splitlines()]
        times = {e["event"]: e["t"] for e in events if e["event"] in ("stream", "loop", "loop_end", "end")}
        count += 1
        began.append(times["stream"])
        ended.append(times["end"])
        if "loop_end" not in times:
            failed += 1
            continue
        figures = {e["metric"]: e["values"][0] for e in events if e["event"] == "measured"}
        in_loop = (times["loop_end"] - times["loop"]) / 1e9
        loops += in_loop
        held += in_loop + figures.get("time.load", 0.0) + figures.get("time.first_run", 0.0)
    wall = (max(ended) - min(began)) / 1e9
    return Made(latency, wall / max(count, 1), loops / wall, held / wall, failed)


def first_models(options: argparse.Namespace) -> list[str]:
    """`--models` names of the targets, as `bw find` lists them."""
    words = [sys.executable, "-m", "benchmodels.zoo", "list", *{t.partition(":")[0] for t in options.targets}]
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    entries = [json.loads(line) for line in listed if line.startswith("{")]
    names = [f"{e['zoo']}:{e['name']}" for e in entries if "name" in e]
    return names[: options.models]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=["torchvision:*"])
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stop", default="2s")
    parser.add_argument("--scale", default="full")
    parser.add_argument("--overlap-only", action="store_true", help="no plain runs: only shares and seconds a model")
    parser.add_argument("--quick", action="store_true", help="one round of five models")
    options = parser.parse_args()
    if not has_gpu():
        print("no GPU here")
        return 0
    if options.quick:
        options.models, options.rounds = 5, 1
    targets = first_models(options) if any("*" in target for target in options.targets) else options.targets
    kinds = (True,) if options.overlap_only else (False, True)
    rounds: dict[bool, list[Made]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as place:
        for number in range(options.rounds):
            for overlap in kinds if number % 2 == 0 else tuple(reversed(kinds)):
                rounds[overlap].append(run_once(targets, options, Path(place), overlap=overlap))
    for overlap, made in rounds.items():
        best = min(made, key=lambda one: one.each_s)
        print(
            f"{'overlapped' if overlap else 'plain':<11} {len(best.latency_s)} models, {best.failed} failed: "
            f"{best.each_s:.2f} s each, loops {best.in_loop:.0%} of the wall time, on the GPU {best.on_gpu:.0%}"
        )
    return judged(rounds)


def judged(rounds: dict[bool, list[Made]]) -> int:
    share = max(one.on_gpu for one in rounds[True])
    if False not in rounds:
        return 0 if share >= BAR_SHARE else 1
    ratios = {}
    for model in rounds[False][0].latency_s:
        pairs = [
            beside.latency_s[model] / alone.latency_s[model]
            for beside, alone in zip(rounds[True], rounds[False], strict=True)
            if beside.latency_s.get(model) and alone.latency_s.get(model)
        ]
        if pairs:
            ratios[model] = statistics.median(pairs)
    for model, ratio in sorted(ratios.items(), key=lambda each: -abs(each[1] - 1))[:10]:
        print(f"  {model:<60} {ratio:.4f}")
    middle = statistics.median(ratios.values()) if ratios else float("nan")
    print(f"latency, overlapped ÷ plain: median of {len(ratios)} models {middle:.4f} (bar 1 ± {BAR_RATIO:g})")
    return 0 if abs(middle - 1) <= BAR_RATIO and share >= BAR_SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
