"""What it costs to start benchwright and to wrap a command that does nothing.

    python performance/start_up.py [--rounds 15] [--peer] [--quick]

CPU time (user and system) of the process and everything it starts, interleaved, medians. Bars: `--help` ≤ 0.15 s; wrapping
`true` ≤ 0.25 s more than `true` for the first job, ≤ 20 ms for each further one, outside of a repository; inside one, git is
asked for the commit and the modified files, which has a line of its own. `--peer` installs pyperf and asv into an
environment of their own, outside the project, and measures their `--help` beside ours.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from _peers import peer_environment

_IN_REPOSITORY = "… in this repository"


def cpu_s(argv: list[str], env: dict[str, str], folder: str) -> float:
    """User and system time of `argv`, run in `folder`, and its descendants."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=folder
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{argv} failed:\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--more", type=int, default=20, help="further jobs, to tell their cost from the first one's")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rounds = 5 if options.quick else options.rounds

    bw = [sys.executable, "-m", "benchwright"]
    with tempfile.TemporaryDirectory() as base:
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"BENCHWRIGHT_BASE": base}
        cases = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "true": ["true"],
            "benchwright --help": [*bw, "--help"],
            "benchwright run -- true": [*bw, "run", "--no-store", "--", "true"],
            f"… --repeat {1 + options.more}": [
                *bw,
                "run",
                "--no-store",
                "--repeat",
                str(1 + options.more),
                "--",
                "true",
            ],
        }
        cases["… and into the store"] = [*bw, "run", "--", "true"]
        cases[_IN_REPOSITORY] = cases["benchwright run -- true"]
        if options.peer:
            bin_ = peer_environment("start-up", ["pyperf==2.9.0", "asv"]) / "bin"
            cases["pyperf --help"] = [str(bin_ / "python"), "-m", "pyperf", "--help"]
            cases["asv --help"] = [str(bin_ / "asv"), "--help"]
        repository = str(Path(__file__).parent)
        folders = {name: repository if name == _IN_REPOSITORY else base for name in cases}
        for name, argv in cases.items():
            cpu_s(argv, env, folders[name])  # compiles bytecode, fills caches
        seen: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, argv in cases.items():
                seen[name].append(cpu_s(argv, env, folders[name]))

    medians = {name: statistics.median(values) for name, values in seen.items()}
    print(f"CPU seconds, median of {rounds} interleaved rounds, {Path(sys.executable).name} {sys.version.split()[0]}")
    for name, value in medians.items():
        print(f"  {name:<26} {value:7.3f}   (best {min(seen[name]):.3f})")
    first = medians["benchwright run -- true"] - medians["true"]
    each = (medians[f"… --repeat {1 + options.more}"] - medians["benchwright run -- true"]) / options.more
    print(f"--help ÷ bare python: {medians['benchwright --help'] / medians['python -c pass']:.1f}")
    print(f"--help {medians['benchwright --help']:.3f} s (bar 0.15)")
    print(f"wrapping true: first job {first:.3f} s (bar 0.25), each further one {each * 1e3:.1f} ms (bar 20)")


if __name__ == "__main__":
    main()
