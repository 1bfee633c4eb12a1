"""What the artifact cache costs: knowing an unchanged file, and verifying it whole.

    python performance/artifact_cache.py [--size 1GB] [--quick]

Puts a file of that size into a cache, as a download would, then measures in turns, in a process of their own each: how long
`known` takes, also for the first call of a process, and how fast all of it is verified beside `sha256sum` on the same file.
The file is in the page cache for both. Some builds of `sha256sum` do without the processor's instructions for it, so
`openssl dgst` stands beside it where there is one. Bars: known in 10 ms; verified at 80 % of the speed of `sha256sum`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchwright.artifacts.cache import ArtifactCache
from benchwright.artifacts.inventory import ArtifactInventory
from benchwright.core.artifact import Artifact
from benchwright.core.quantities import format_bytes, parse_size

KNOWN = """
import sys, time
from pathlib import Path
from benchwright.artifacts.cache import ArtifactCache
from benchwright.core.artifact import Artifact
wanted = Artifact(key="m", filename="model.bin", sha256=sys.argv[2])
for _ in range(2):
    began = time.perf_counter()
    found = ArtifactCache(Path(sys.argv[1])).known(wanted)
    print(time.perf_counter() - began if found else "lost")
"""


def random_file(path: Path, size: int) -> None:
    block = os.urandom(1 << 20)
    with open(path, "wb") as file:
        for number in range(-(-size // len(block))):
            file.write(number.to_bytes(8, "little") + block[8:])
        file.truncate(size)


def known_s(folder: Path, sha256: str) -> tuple[float, float]:
    """Of the first call in a process, and of the second."""
    done = subprocess.run([sys.executable, "-c", KNOWN, folder, sha256], capture_output=True, text=True, check=True)
    first, second = map(float, done.stdout.split())
    return first, second


def timed(what: str, argv: list[str]) -> float:
    began = time.perf_counter()
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{what}: {done.stdout}{done.stderr}")
    return time.perf_counter() - began


def verified_s(folder: Path) -> float:
    """Within this process: what `benchwright cache verify` does, without starting Python."""
    inventory = ArtifactInventory(folder)
    (entry,) = inventory.entries()
    began = time.perf_counter()
    if problem := inventory.verify(entry, lambda done: None):
        sys.exit(problem)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="1GB")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="64 MB, 5 rounds")
    options = parser.parse_args()
    size, rounds = (parse_size("64MB"), 5) if options.quick else (parse_size(options.size), options.rounds)
    with tempfile.TemporaryDirectory() as base:
        folder, source = Path(base) / "artifacts", Path(base) / "source"
        random_file(source, size)
        kept: Artifact = ArtifactCache(folder).put(source, "model.bin")
        source.unlink()
        assert kept.sha256 is not None
        path = folder / "objects" / kept.sha256 / "model.bin"
        known = [known_s(folder, kept.sha256) for _ in range(rounds + 1)][1:]
        peers = {"sha256sum": ["sha256sum", str(path)]}
        if shutil.which("openssl"):
            peers["openssl dgst"] = ["openssl", "dgst", "-sha256", str(path)]
        ours: list[float] = []
        theirs: dict[str, list[float]] = {name: [] for name in peers}
        for number in range(rounds + 1):  # the first one reads the file into memory
            seconds = verified_s(folder)
            others = {name: timed(name, argv) for name, argv in peers.items()}
            if number:
                ours.append(seconds)
                for name, spent in others.items():
                    theirs[name].append(spent)
    print(f"{format_bytes(size)}, {rounds} rounds in turns")
    print(f"  known, first call of a process   {statistics.median(first for first, _ in known) * 1e3:8.2f} ms (bar 10)")
    print(f"  known again                      {statistics.median(again for _, again in known) * 1e3:8.2f} ms")
    print(f"  verify                           {size / statistics.median(ours) / 1e6:8.0f} MB/s")
    for name, spent in theirs.items():
        ratios = [b / a for a, b in zip(ours, spent, strict=True)]
        span = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(
            f"  {name:<32} {size / statistics.median(spent) / 1e6:8.0f} MB/s; verify is {span} times as fast (bar 0.80)"
        )


if __name__ == "__main__":
    main()
