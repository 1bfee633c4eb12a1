"""What a run of a specification costs beyond the programs it starts.

    python performance/spec_overhead.py [--rounds 9] [--quick]

CPU and wall time of `benchwright run spec.json --program P` for a specification with one test and one with 21, less those
of the program alone, in turn. P sleeps 0.09 s and prints an observer's record; the model has two files that are checked.
CPU times hold on a busy machine too, within reason; wall times need a quiet one. Bars: 0.3 s for the first test, 30 ms for
each further one. Runs are also made with the store, which is written after the results are shown.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

FIRST_BAR_S, FURTHER_BAR_S = 0.3, 0.03
FEW, MANY = 1, 21
PROGRAM = """#!/bin/sh
sleep 0.09
echo 'Caffe2Observer {"type": "NET", "metric": "latency", "unit": "us", "value": "12.5"}'
"""


class Cost(NamedTuple):
    cpu_s: float
    wall_s: float


def cost(argv: list[str], env: dict[str, str], cwd: Path) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{argv} failed:\n{done.stdout.decode()}{done.stderr.decode()}")
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    options = parser.parse_args()
    rounds = 3 if options.quick else options.rounds

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"BENCHWRIGHT_BASE": str(folder / "base")}
        program = folder / "program.sh"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        files = {}
        for key in ("init", "predict"):
            content = key.encode() * 1_000_000
            (folder / f"{key}.pb").write_bytes(content)
            md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
            files[key] = {"filename": f"{key}.pb", "location": f"{key}.pb", "md5": md5}
        line = "{program} --net {files.predict} --init_net {files.init} --iter {iter}"
        for count in (FEW, MANY):
            tests = [{"identifier": "{ID}", "commands": [line], "iter": 1}] * count
            (folder / f"{count}.json").write_text(
                json.dumps({"model": {"name": "net", "files": files}, "tests": tests})
            )
        bw = [sys.executable, "-m", "benchwright", "run", "-q", "--program", str(program)]
        commands = {
            "program": [str(program)],
            "first": [*bw, "--no-store", f"{FEW}.json"],
            "many": [*bw, "--no-store", f"{MANY}.json"],
            "store": [*bw, f"{FEW}.json"],
        }
        found: dict[str, list[Cost]] = {name: [] for name in commands}
        for number in range(rounds + 1):
            for name, argv in commands.items():
                measured = cost(argv, env, folder)
                if number:  # the first round fills caches
                    found[name].append(measured)

    def median(name: str, field: str) -> float:
        return statistics.median(getattr(each, field) for each in found[name])

    print(f"{rounds} rounds in turn, load {os.getloadavg()[0]:.1f}; medians beyond the program")
    print(f"  {'':<24} {'CPU s':>7} {'wall s':>7}")
    rows = {}
    for field in Cost._fields:
        alone = median("program", field)
        rows["first test", field] = median("first", field) - alone
        rows["… and into the store", field] = median("store", field) - alone
        rows["each further test", field] = (median("many", field) - median("first", field)) / (MANY - FEW) - alone
    for name in dict.fromkeys(name for name, _ in rows):
        print(f"  {name:<24} {rows[name, 'cpu_s']:7.3f} {rows[name, 'wall_s']:7.3f}")
    missed = rows["first test", "cpu_s"] > FIRST_BAR_S or rows["each further test", "cpu_s"] > FURTHER_BAR_S
    print(
        f"bars (CPU): {FIRST_BAR_S} s for the first, {FURTHER_BAR_S} s for each further one: {'missed' if missed else 'met'}"
    )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
