"""Are the verdicts of an A/B right? False alarms, power, coverage and launches used, in every noise family, beside other tools' rules.

    python performance/verdicts.py --seed 1
    python performance/verdicts.py --quick
    python performance/verdicts.py --record 600 --only real     short launches recorded on this machine, here and now
    python performance/verdicts.py --peer                       asv and pyperf themselves, too, in an environment of their own
    python performance/verdicts.py --live 5                     that many real A/As and as many A/Bs 10 % apart, by `benchwright ab`

Ours: at most 20 pairs in random balanced order, 1 %, margin 1 %: judged once ("fixed"), or looked at as the product does
("sequential"), where launches end with a verdict. A difference is called if the interval excludes 1. Other tools measure one side after the other, except where said.

Bars: false alarms at most 1 % (95 % upper bound 2 %) in every family and with a treatment that is 5 or 10 times noisier, fixed and sequential; the 99 % interval covers 98 %; fixed power
97 % at 1 % under drift, 99 % at 2 % under hierarchical noise, 91 % at 5 % on real CPU time; sequential launches at most 60 % of the fixed
ones, on average over the cases that the fixed design decides in 97 % of replicas.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from _noise_families import FAMILIES, Family, trace_family
from _peer_statistics import hyperfine_significant, pyperf_significant
from _peers import peer_environment
from _verdict_rules import (
    Design,
    asv_called,
    faipep_called,
    judged,
    mann_whitney_called,
    random_orders,
    threshold_called,
)

Array = Any
PAIRS, SAMPLES, MARGIN = 20, 5, 0.01
EFFECTS = (0.0, 0.01, 0.02, 0.05, 0.10)
FIXED, SEQUENTIAL = "fixed", "sequential"
UNEQUAL = (5, 10)  # times the control's spread
DESIGNS = {FIXED: Design(PAIRS, (PAIRS,)), SEQUENTIAL: Design(PAIRS)}
PEERS = ("threshold 7 %", "asv", "pyperf t", "Welch", "Mann–Whitney 9", "Welch, ABBA", "FAI-PEP")
_MOST_FALSE, _MOST_FALSE_BOUND, _LEAST_COVERED, _MOST_USED = 0.01, 0.02, 0.98, 0.60
_POWER = {("drift", 0.01): 0.97, ("hierarchical", 0.02): 0.99, ("real CPU", 0.05): 0.91}
_PROGRAM = """
import time
def work(count):
    total = 0
    for i in range(count):
        total += i * i % 7
    return total
c, w = time.process_time(), time.perf_counter()
work({count})
print(time.process_time() - c, time.perf_counter() - w)
"""


def logs_of(launches: Array) -> Array:
    return np.log(np.maximum(np.median(launches, axis=2), 1e-9))


def upper_bound(hits: int, count: int) -> float:
    """Of a rate, 95 % one-sided (Wilson)."""
    z, share = 1.645, hits / count
    middle = share + z * z / (2 * count)
    return (middle + z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))) / (1 + z * z / count)


class Missed(list[str]):
    """Bars that were missed."""

    def check(self, kept: bool, text: str) -> None:
        if not kept:
            self.append(text)


def our_rows(family: Family, number: int, replicas: int, seed: int, missed: Missed) -> list[tuple[float, float]]:
    """Prints a row for each design; returns power of the fixed design and the share of launches the sequential one used."""
    rng = np.random.default_rng([seed, number])
    logs = logs_of(family.draw(rng, replicas, 2 * PAIRS, SAMPLES))
    orders = random_orders(rng, replicas, PAIRS)
    powers: dict[str, list[float]] = {}
    used: dict[str, list[float]] = {}
    for name, design in DESIGNS.items():
        found = [judged(logs, orders, effect, design, MARGIN) for effect in EFFECTS]
        called = [float(f["called"].mean()) for f in found]
        covered = min(float(f["covered"].mean()) for f in found)
        powers[name], used[name] = called, [float(f["used"].mean()) / PAIRS for f in found]
        bound = upper_bound(int(found[0]["called"].sum()), replicas)
        print(
            f"| {family.name} | {name} | {called[0] * 100:.2f} (≤ {bound * 100:.2f}) "
            f"| {', '.join(f'{c * 100:.1f}' for c in called[1:])} | {float(found[0]['same'].mean()) * 100:.0f} "
            f"| {covered * 100:.2f} | {', '.join(f'{u * 100:.0f}' for u in used[name])} |",
            flush=True,
        )
        # A short trace holds few independent stretches: its rates are coarser than the count of replicas says.
        slack = 0.005 if "real" in family.name else 2 * math.sqrt(_MOST_FALSE / replicas) if replicas < 10_000 else 0.0
        missed.check(called[0] <= _MOST_FALSE + slack, f"{family.name}, {name}: {called[0]:.2%} false")
        missed.check(bound <= _MOST_FALSE_BOUND + slack, f"{family.name}, {name}: up to {bound:.2%} false")
        missed.check(covered >= _LEAST_COVERED - slack, f"{family.name}, {name}: covers {covered:.2%}")
    for (word, effect), least in _POWER.items():
        if word in family.name:
            power = powers[FIXED][EFFECTS.index(effect)]
            missed.check(power >= least, f"{family.name}: {power:.1%} of {effect:.0%} found")
    return [(p, u) for p, u in zip(powers[FIXED][1:], used[SEQUENTIAL][1:], strict=True)]


def unequal_rows(times: int, replicas: int, seed: int, missed: Missed) -> None:
    """False alarms if the treatment is noisier, with 8, 20 and 40 pairs."""
    rng = np.random.default_rng([seed, 70, times])
    for pairs in (8, PAIRS, 2 * PAIRS):
        orders = random_orders(rng, replicas, pairs)
        is_treatment = np.stack([~orders, orders], axis=2).reshape(replicas, 2 * pairs)
        logs = 0.01 * np.where(is_treatment, times, 1) * rng.standard_normal(is_treatment.shape)
        for name, design in {FIXED: Design(pairs, (pairs,)), SEQUENTIAL: Design(pairs)}.items():
            called = judged(logs, orders, 0.0, design, MARGIN)["called"]
            bound = upper_bound(int(called.sum()), replicas)
            print(
                f"| treatment {times} times noisier, {pairs} pairs | {name} | {called.mean() * 100:.2f} (≤ {bound * 100:.2f}) |"
            )
            slack = 2 * math.sqrt(_MOST_FALSE / replicas)
            missed.check(
                called.mean() <= _MOST_FALSE + slack, f"{times} times noisier, {pairs} pairs: {called.mean():.2%}"
            )


def peer_row(family: Family, number: int, replicas: int, seed: int) -> None:
    rng = np.random.default_rng([seed, 50, number])
    cells = np.zeros((len(PEERS), len(EFFECTS)))
    for series in family.draw(rng, replicas, 2 * PAIRS, SAMPLES):
        abba = np.arange(2 * PAIRS).reshape(PAIRS, 2)
        abba[1::2] = abba[1::2, ::-1]
        for column, effect in enumerate(EFFECTS):
            a, b = series[:PAIRS], series[PAIRS:] * (1 + effect)
            c, d = series[abba[:, 0]], series[abba[:, 1]] * (1 + effect)
            nine = np.median(a[-9:], axis=1), np.median(b[:9], axis=1)
            cells[:, column] += (
                threshold_called(a[-1:], b[:1]),
                asv_called(a, b),
                pyperf_significant(a[:, :3], b[:, :3]),
                hyperfine_significant(a, b),
                mann_whitney_called(*nine, 0.05),
                hyperfine_significant(c, d),
                faipep_called(series, effect),
            )
    shares = cells / replicas * 100
    texts = [f"{row[0]:.0f} / {', '.join(f'{v:.0f}' for v in row[1:])}" for row in shares]
    print(f"| {family.name} | " + " | ".join(texts) + " |", flush=True)


def print_real_peers(chosen: list[tuple[int, Family]], replicas: int, seed: int) -> None:
    """asv and pyperf by their own code, on series of which the rules above see the same."""
    try:
        python = peer_environment("verdicts", ["asv==0.6.6", "pyperf==2.9.0"]) / "bin" / "python"
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"asv and pyperf are absent: they could not be installed ({error})", file=sys.stderr)
        return
    script = str(Path(__file__).with_name("_verdict_peers.py"))
    print(f"\n% called at 0 / 1, 2, 5, 10 % by the tools themselves (by the rules above); {replicas} replicas\n")
    print("| family | asv | pyperf |\n|---|---|---|")
    for number, family in chosen:
        launches = family.draw(np.random.default_rng([seed, 60, number]), replicas, 2 * PAIRS, SAMPLES)
        cases = [(s[:PAIRS], s[PAIRS:] * (1 + effect)) for effect in EFFECTS for s in launches]
        told = json.dumps([[a.tolist(), b.tolist()] for a, b in cases])
        out = subprocess.run([str(python), script], input=told, capture_output=True, text=True, check=True).stdout
        ruled = [(asv_called(a, b), pyperf_significant(a[:, :3], b[:, :3])) for a, b in cases]
        shares = [
            np.array(found, dtype=float).reshape(len(EFFECTS), replicas, 2).mean(1) * 100
            for found in (json.loads(out), ruled)
        ]
        texts = [
            " (".join(f"{s[0, tool]:.0f} / {', '.join(f'{v:.0f}' for v in s[1:, tool])}" for s in shares) + ")"
            for tool in (0, 1)
        ]
        print(f"| {family.name} | " + " | ".join(texts) + " |", flush=True)


def recorded_families(launches: int) -> list[Family]:
    """CPU and wall time of short launches, one sample each."""
    command = [sys.executable, "-S", "-c", _PROGRAM.format(count=300_000)]
    rows = []
    for _ in range(launches):
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        rows.append([float(word) for word in out.split()])
    traces = {"real CPU time": [[row[0]] for row in rows], "real wall time": [[row[1]] for row in rows]}
    for name, trace in traces.items():
        logs = np.log(np.array(trace)[:, 0])
        correlation = float(np.corrcoef(logs[1:], logs[:-1])[0, 1])
        print(
            f"{name}: {launches} launches, spread {logs.std() * 100:.1f} %, correlation of neighbours {correlation:.2f}"
        )
    return [trace_family(name, trace) for name, trace in traces.items()]


def print_live(count: int) -> None:
    """`benchwright ab` on commands that are the same, and 10 % apart."""
    print("\n| real A/B | verdicts on CPU time | on wall time | pairs |\n|---|---|---|---|")
    for name, factor in (("A/A", 1.0), ("10 % more work", 1.1)):
        cpu, wall, pairs = [], [], []
        for _ in range(count):
            sides = [
                f"cmd:{sys.executable} -S -c 'for i in range({int(1_500_000 * f)}): i * i % 7'" for f in (1.0, factor)
            ]
            command = [sys.executable, "-m", "benchwright", "ab", "--control", sides[0], "--treatment", sides[1]]
            out = subprocess.run([*command, "--budget", "60s", "--json"], capture_output=True, text=True, check=False)
            effects = {e["metric"]: e for e in json.loads(out.stdout)["effects"]}
            cpu.append(effects["process.cpu_time"]["verdict"])
            wall.append(effects["process.duration"]["verdict"])
            pairs.append(effects["process.cpu_time"]["launches"][0])
        said = [", ".join(f"{v.count(word)} {word}" for word in dict.fromkeys(v)) for v in (cpu, wall)]
        print(f"| {name} | {said[0]} | {said[1]} | {sum(pairs) / count:.0f} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicas", type=int, default=20_000)
    parser.add_argument("--record", type=int, default=0, metavar="LAUNCHES")
    parser.add_argument("--live", type=int, default=0, metavar="COUNT")
    parser.add_argument("--quick", action="store_true", help="2,000 replicas, 30 of the other tools")
    parser.add_argument("--peer", action="store_true", help="install and run asv and pyperf, too")
    parser.add_argument("--only", metavar="WORD", help="only families whose name has this word")
    options = parser.parse_args()
    replicas, of_peers = (2_000, 30) if options.quick else (options.replicas, 300)
    start, missed = time.perf_counter(), Missed()
    families = [*FAMILIES, *(recorded_families(options.record) if options.record else ())]
    chosen = [(n, f) for n, f in enumerate(families) if not options.only or options.only in f.name]
    print(f"% of {replicas} replicas, {PAIRS} pairs at most, {SAMPLES} samples a launch, seed {options.seed}\n")
    print(
        "| family | design | false | found of 1, 2, 5, 10 % | A/A called same | least coverage | launches used, 0 to 10 % |"
    )
    print("|" + "---|" * 7)
    cases = [case for n, f in chosen for case in our_rows(f, n, replicas, options.seed, missed)]
    for times in UNEQUAL if not options.only or options.only in "noisier" else ():
        unequal_rows(times, replicas, options.seed, missed)
    clear = [used for power, used in cases if power >= 0.97]
    if clear:
        mean = sum(clear) / len(clear)
        print(f"\nSequential launches in the {len(clear)} cases that the fixed design decides: {mean:.0%} on average")
        missed.check(mean <= _MOST_USED, f"sequential launches: {mean:.0%}")
    print(f"\n% called by other tools at 0 / 1, 2, 5, 10 %; {of_peers} replicas\n")
    print("| family | " + " | ".join(PEERS) + " |\n|" + "---|" * (1 + len(PEERS)))
    for number, family in chosen:
        peer_row(family, number, of_peers, options.seed)
    if options.peer:
        print_real_peers(chosen, 30 if options.quick else 100, options.seed)
    if options.live:
        print_live(options.live)
    print(f"\n{time.perf_counter() - start:.0f} s")
    for text in missed:
        print(f"bar missed: {text}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
