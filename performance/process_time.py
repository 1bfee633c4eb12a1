"""`process.duration` and `process.cpu_time` of short programs, in turns with `hyperfine -N`.

    python performance/process_time.py [--rounds 40] [--quick]

Each round runs every command once under hyperfine and once as a launch of ours, with the environment that a launch has, and the order
changes from round to round. Both clocks run from exec to exit. Other work on the machine lengthens either side at random, so that the bar is about
the lower quartiles: within 1 ms of each other.
hyperfine comes from the system (`apt install hyperfine`, `cargo install hyperfine`); without it there is nothing to compare with.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchwright.artifacts.probe_folder import probe_folder
from benchwright.core.job import Job
from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor

BAR_MS = 1.0
COMMANDS = {
    "true": ("true",),
    "sleep 0.02": ("sleep", "0.02"),
    "sleep 0.5": ("sleep", "0.5"),
    "python -c pass": (sys.executable, "-c", "pass"),
}


class Both:
    """One command, timed by either side; milliseconds of wall and of CPU time."""

    def __init__(self, argv: tuple[str, ...], executor: LocalExecutor, folder: Path) -> None:
        self._argv = argv
        self._executor = executor
        self._folder = folder
        self._probe = str(probe_folder(folder))

    def hyperfine(self) -> tuple[float, float]:
        out = self._folder / "hyperfine.json"
        command = " ".join(self._argv)
        subprocess.run(
            ["hyperfine", "-N", "--runs", "1", "--style", "none", "--export-json", str(out), command],
            check=True,
            capture_output=True,
        )
        [result] = json.loads(out.read_text())["results"]
        return result["mean"] * 1e3, (result["user"] + result["system"]) * 1e3

    def ours(self) -> tuple[float, float]:
        stream = self._folder / "job.data"
        stream.unlink(missing_ok=True)
        job = Job(
            id="job",
            benchmark="job",
            argv=self._argv,
            cwd=os.getcwd(),
            stream=str(stream),
            log=str(self._folder / "job.log"),
            probe_path=self._probe,
        )
        self._executor.run([job], Listener())
        end = json.loads(stream.read_text().splitlines()[-1])
        return end["duration_s"] * 1e3, end["cpu_s"] * 1e3


def quartile_and_median(values: list[float]) -> tuple[float, float]:
    lower, middle, _ = statistics.quantiles(values, n=4)
    return lower, middle


def shown(pair: tuple[float, float]) -> str:
    return f"{pair[0]:.2f} ({pair[1]:.2f})"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="10 rounds")
    options = parser.parse_args()
    rounds = 10 if options.quick else options.rounds
    if shutil.which("hyperfine") is None:
        print("hyperfine is not installed; nothing to compare with")
        return 0

    print(f"{rounds} rounds in turn, milliseconds: lower quartile (median)")
    print(f"  {'':<15}{'ours':>18}{'hyperfine':>18}{'difference':>18}   {'CPU ours':>16}{'hyperfine':>16}")
    missed = []
    with tempfile.TemporaryDirectory() as place, LocalExecutor() as executor:
        for name, argv in COMMANDS.items():
            both = Both(argv, executor, Path(place))
            both.ours(), both.hyperfine()  # fills caches
            pairs = []
            for number in range(rounds):
                order = (both.ours, both.hyperfine) if number % 2 else (both.hyperfine, both.ours)
                times = {side.__name__: side() for side in order}
                pairs.append((times["ours"], times["hyperfine"]))
            wall = [quartile_and_median([pair[side][0] for pair in pairs]) for side in (0, 1)]
            cpu = [quartile_and_median([pair[side][1] for pair in pairs]) for side in (0, 1)]
            apart = wall[0][0] - wall[1][0]
            paired = statistics.median(ours[0] - theirs[0] for ours, theirs in pairs)
            print(
                f"  {name:<15}{shown(wall[0]):>18}{shown(wall[1]):>18}{f'{apart:+.2f} ({paired:+.2f})':>18}"
                f"   {shown(cpu[0]):>16}{shown(cpu[1]):>16}"
            )
            if abs(apart) > BAR_MS:
                missed.append(name)
    print(f"bar: within {BAR_MS:g} ms; " + (f"missed by {', '.join(missed)}" if missed else "held"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
