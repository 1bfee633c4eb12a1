"""What it takes to read a very long run back: CPU time and memory of `bw show`, of which nothing but the streams is kept.

    python performance/read_back.py [--quick] [--steps 5000000]

A loop of five million steps that gives its loss in each, and a program that prints as many values. Bars: 10 s of CPU and
300 MB for the steps; the log's values have none of their own. `--quick` uses a tenth, and no bars.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LOOP = """
from benchprobe import give, iterate
for i in iterate("train", range({count}), batch_size=32):
    give(loss=1.0 / (i + 1))
"""
LOG = """
import sys
for i in range({count}): sys.stdout.write(f"speed: {{1000 + i % 97}}.5\\n")
"""
MOST_CPU_S, MOST_BYTES = 10.0, 300e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5_000_000)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    count = options.steps // 10 if options.quick else options.steps
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, text, more in (
            ("loop", LOOP, ["--warmup", "1000", "loop.py"]),
            ("log", LOG, ["--metric", r"speed=speed: ([\d.]+)", "--", sys.executable, "log.py"]),
        ):
            (Path(folder) / f"{name}.py").write_text(text.format(count=count))
            bw(folder, "run", "--no-store", *more)
            cpu_s, peak_bytes = bw(folder, "show", "last")
            size = max(path.stat().st_size for path in Path(folder).glob("base/runs/*/*.data"))
            print(f"{name}: {count:,} samples, {size / 1e6:.0f} MB: {cpu_s:.1f} s of CPU, {peak_bytes / 1e6:.0f} MB")
            missed |= name == "loop" and not options.quick and (cpu_s > MOST_CPU_S or peak_bytes > MOST_BYTES)
    print(
        f"bars {MOST_CPU_S:g} s, {MOST_BYTES / 1e6:.0f} MB: {'not applied' if options.quick else 'missed' if missed else 'met'}"
    )
    return int(missed)


def bw(folder: str, *words: str) -> tuple[float, float]:
    """CPU seconds and peak memory of the command, its children left out."""
    command = [sys.executable, "-m", "benchwright", *words]
    env = {**os.environ, "BENCHWRIGHT_BASE": str(Path(folder) / "base")}
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, errors.decode()
    return used.ru_utime + used.ru_stime, used.ru_maxrss * (1024 if sys.platform == "linux" else 1)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
