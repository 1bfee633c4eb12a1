"""Whether processes forked from a warm one measure the same as processes started afresh, and what a further model costs.

    python performance/warm_start.py [--rounds 5] [--device cuda] [--stop 2s] [--models 6] [--quick]

Runs of the same models alternate between warm and cold (`--cold`). For each model: the ratio of the median latencies,
warm ÷ cold, of host memory, and of CPU time in the measured loop (as far as the sampler sees it). Then, for each launch but
the first of its warm process: its whole time, from the order to the outcome, less loading, first call and the measured loop:
what a model costs beyond what cannot be avoided. Bar: 1.5 s warm; latency and memory within 2 % on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _device import has_gpu

import benchwright

BAR_S = 1.5
HEAD = "import torch\nfrom torch import nn\n\ntorch.manual_seed(0)\n"
BODIES = (
    "m, x = nn.Linear({n}, {n}), torch.randn(8, {n})",
    "m = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, {n}, 3))\nx = torch.randn(2, 3, 64, 64)",
    "m, x = nn.TransformerEncoderLayer({n}, 4, batch_first=True), torch.randn(2, 32, {n})",
)
Figures = dict[str, float]


def write_scripts(folder: Path, count: int, device: str) -> None:
    folder.mkdir()
    for number in range(count):
        body = BODIES[number % len(BODIES)].format(n=64 + 32 * (number // len(BODIES)))
        move = f"\nm, x = m.to('{device}'), x.to('{device}')" if device != "cpu" else ""
        (folder / f"model{number}.py").write_text(f"{HEAD}{body}{move}\nwith torch.no_grad():\n    m.eval()(x)\n")


def measured_once(scripts: Path, base: Path, options: argparse.Namespace, *, cold: bool) -> dict[str, Figures]:
    """The figures of each model in one run."""
    given: dict[str, Any] = (
        {"stop": options.stop, "device": options.device} if options.device != "cpu" else {"stop": options.stop}
    )
    run = benchwright.run(scripts, all_scripts=True, base=base, cold=cold, no_store=True, progress=False, **given)
    found: dict[str, Figures] = {}
    for result in run.results:
        [launch] = result.launches
        if launch.status.value != "ok":
            print(f"{result.benchmark.name}: {launch.detail}")
            continue
        lines = Path(f"{run.folder}/{launch.job}.data").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        figures = {m.metric: statistics.median(m.samples) for m in launch.measurements}
        found[result.benchmark.name] = {
            "began": float(events[0]["t"]),
            "latency": figures["latency"],
            "memory": figures["memory.host"],
            "beyond": beyond_s(events),
            "warm": float(bool(launch.facts.get("warm"))),
        }
    return found


def beyond_s(events: list[Mapping[str, Any]]) -> float:
    """From the order to the outcome, less what cannot be avoided."""
    times = {e["event"]: e["t"] for e in events if e["event"] in ("stream", "loop", "loop_end", "end")}
    loaded = sum(
        e["values"][0] for e in events if e["event"] == "measured" and e["metric"] in ("time.load", "time.first_run")
    )
    return (times["end"] - times["stream"] - (times["loop_end"] - times["loop"])) / 1e9 - loaded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--stop", default="2s")
    parser.add_argument("--quick", action="store_true", help="one round of three models, 0.5 s each")
    options = parser.parse_args()
    if options.device != "cpu" and not has_gpu():
        print("no GPU here: nothing measured")
        return 0
    if options.quick:
        options.rounds, options.models, options.stop = 1, 3, "0.5s"
    rounds: dict[bool, list[dict[str, Figures]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as place:
        scripts = Path(place) / "scripts"
        write_scripts(scripts, options.models, options.device)
        for number in range(options.rounds):
            for cold in (False, True) if number % 2 == 0 else (True, False):
                began = time.monotonic()
                rounds[cold].append(measured_once(scripts, Path(place) / "base", options, cold=cold))
                tell_round(rounds[cold][-1], number, time.monotonic() - began, cold=cold)
    worst = tell_ratios(rounds)
    further = tell_costs(rounds)
    print(f"latency farthest from 1: {worst:+.1%}; a further model: {further:.2f} s (bar {BAR_S:g})")
    return 1 if further > BAR_S else 0


def tell_round(found: dict[str, Figures], number: int, took_s: float, *, cold: bool) -> None:
    beyond = [f["beyond"] for f in found.values()]
    middle = statistics.median(beyond) if beyond else float("nan")
    print(
        f"round {number + 1}, {'cold' if cold else 'warm'}: {len(found)} models in {took_s:.0f} s, {middle:.2f} s each beyond "
        "loading, first call and loop",
        flush=True,
    )


def tell_ratios(rounds: dict[bool, list[dict[str, Figures]]]) -> float:
    worst = 0.0
    print(f"{len(rounds[True])} rounds; warm ÷ cold, median [least, most] of rounds")
    for model in rounds[True][0]:
        words = []
        for figure in ("latency", "memory"):
            pairs = [
                warm[model][figure] / cold[model][figure]
                for warm, cold in zip(rounds[False], rounds[True], strict=True)
                if model in warm and model in cold
            ]
            ratio = statistics.median(pairs)
            words.append(f"{figure} {ratio:.3f} [{min(pairs):.3f}, {max(pairs):.3f}]")
            if figure == "latency" and abs(ratio - 1) > abs(worst):
                worst = ratio - 1
        print(f"  {model:<44} {'  '.join(words)}")
    return worst


def tell_costs(rounds: dict[bool, list[dict[str, Figures]]]) -> float:
    """The median of launches but the first of each round."""
    medians = {}
    for cold, made in rounds.items():
        in_turn = [sorted(one.values(), key=lambda figures: figures["began"]) for one in made]
        alike = [[f["beyond"] for f in one if f["warm"] == float(not cold)] for one in in_turn]
        further = [beyond for one in alike for beyond in one[1:]]  # the first waits until its warm process is ready
        if not further:
            sys.exit("fewer than two launches were started warm; see the remarks in their streams")
        medians[cold] = statistics.median(further)
        print(
            f"  a further model, {'cold' if cold else 'warm'}: median {medians[cold]:.2f} s, best {min(further):.2f} s"
        )
    return medians[False]


if __name__ == "__main__":
    sys.exit(main())
