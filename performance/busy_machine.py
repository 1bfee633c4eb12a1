"""A/Bs on a machine that others use: a little more work and a little more sleep are found, and nothing where nothing differs.

    python performance/busy_machine.py [--load 4] [--rounds 1] [--budget 3m]

`--load`: so many programs that want a core are started meanwhile; 0 where others keep the machine busy already.

Bar: at a load of 6 on two cores, 10 % more work and 10 ms more sleep regressed within 3 minutes each; no A/A regressed or improved.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = """
import sys, time
total = 0
for number in range(int(sys.argv[1])):
    total += number * number
time.sleep(float(sys.argv[2]))
"""
WORK, SLEEP = ("300000", "0"), ("20000", "0.1")
TRIALS = {
    "10 % more work": (WORK, ("330000", "0")),
    "the same work": (WORK, WORK),
    "10 ms more sleep": (SLEEP, ("20000", "0.11")),
    "the same sleep": (SLEEP, SLEEP),
}
LIMIT_S = 180.0


@contextmanager
def busy(programs: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(programs)]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def trial(folder: Path, sides: tuple[tuple[str, str], tuple[str, str]], budget: str) -> tuple[str, list[str], float]:
    """The verdict, what it says of each metric, and how long it took."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    named = zip(("--control", "--treatment"), sides, strict=True)
    words = [word for option, side in named for word in (option, f"args:{' '.join(side)}")]
    command = [
        "ab",
        *words,
        "--budget",
        budget,
        "--base",
        str(folder),
        "--json",
        "--",
        sys.executable,
        "-S",
        str(program),
    ]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "benchwright", *command], stdout=subprocess.PIPE, text=True, cwd=folder
    )
    body = json.loads(done.stdout)
    told = []
    for effect in body["effects"]:
        between = effect["interval"]
        ends = "" if between is None else f" [{100 * (between['low'] - 1):+.1f}, {100 * (between['high'] - 1):+.1f}]"
        told.append(f"{effect['metric']} {100 * (effect['ratio'] - 1):+.1f} %{ends} {effect['verdict']}")
    return body["verdict"], told, time.monotonic() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=int, default=4, help="programs that want a core (default: 4)")
    parser.add_argument("--rounds", type=int, default=1, help="of all trials (default: 1)")
    parser.add_argument("--budget", default="3m", help="of each trial (default: 3m)")
    options = parser.parse_args()
    wrong = 0
    print("| trial | load | verdict | took | of each metric |\n|---|---:|---|---:|---|")
    with busy(options.load):
        for _ in range(options.rounds):
            for name, sides in TRIALS.items():
                with tempfile.TemporaryDirectory() as folder:
                    verdict, told, took_s = trial(Path(folder), sides, options.budget)
                same = sides[0] == sides[1]
                wrong += verdict in ("regressed", "improved") if same else verdict != "regressed" or took_s > LIMIT_S
                load = os.getloadavg()[0]
                print(f"| {name} | {load:.1f} | {verdict} | {took_s:.0f} s | {'; '.join(told)} |", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
