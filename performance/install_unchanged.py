"""What `install` costs when nothing has changed.

    python performance/install_unchanged.py [--groups 5] [--rounds 21] [--quick]

A suite with that many install groups is made and installed once, from packages made here, without a network. Then `install`
and `--help` are run in turn: CPU time (user and system) and wall time of the whole command, medians. Bar: under 0.3 s.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from local_wheels import make_wheel, offline

BAR_S = 0.3


def spent_s(argv: list[str], env: dict[str, str]) -> tuple[float, float]:
    """CPU and wall time of `argv` and its descendants."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(argv, env=env, capture_output=True, stdin=subprocess.DEVNULL)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{argv} failed:\n{done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def write_suite(folder: Path, groups: int) -> Path:
    """Each group has two benchmarks in folders of their own, and twenty requirements."""
    entries = ["_defaults: {max_duration: 600, install_variant: unpinned, plan: {method: per_gpu}}\n"]
    for n in range(groups):
        for part in "ab":
            definition = folder / f"bench{n}{part}"
            definition.mkdir()
            (definition / "main.py").write_text("print('rate: 1')\n")
            lines = [f"small{i}>=1  # why\n" for i in range(20)]
            (definition / "requirements.in").write_text("".join(lines) + f"small{n}\n# {part}\n")
            entries.append(
                f"bench{n}{part}: {{inherits: _defaults, definition: bench{n}{part}, install_group: group{n}}}\n"
            )
    suite = folder / "suite.yaml"
    suite.write_text("".join(entries))
    return suite


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--quick", action="store_true", help="7 rounds")
    options = parser.parse_args()
    rounds = 7 if options.quick else options.rounds

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for n in range(20):
            make_wheel(folder / "wheels", f"small{n}", "1.0")
        suite = write_suite(folder, options.groups)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= offline(folder / "wheels", folder / "cache") | {"BENCHWRIGHT_BASE": str(folder / "base")}
        bw = [sys.executable, "-m", "benchwright"]
        cases = {"install": [*bw, "install", str(suite)], "--help": [*bw, "--help"]}
        first, _ = spent_s(cases["install"], env)
        cases["python -c pass"] = [sys.executable, "-c", "pass"]
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for _ in range(rounds + 1):
            for name, argv in cases.items():
                seen[name].append(spent_s(argv, env))
    print(f"{options.groups} groups, {rounds} rounds in turn; the first install took {first:.2f} s of CPU")
    print(f"  {'':<16} {'CPU s':>7} {'best':>7} {'wall s':>7} {'best':>7}")
    for name, values in seen.items():
        cpu, wall = zip(*values[1:], strict=True)
        figures = (statistics.median(cpu), min(cpu), statistics.median(wall), min(wall))
        print(f"  {name:<16} " + " ".join(f"{figure:7.3f}" for figure in figures))
    cpu_s = statistics.median(cpu for cpu, _ in seen["install"][1:])
    print(f"install, nothing changed: {cpu_s:.3f} s of CPU (bar {BAR_S})")
    return 1 if cpu_s >= BAR_S else 0


if __name__ == "__main__":
    sys.exit(main())
