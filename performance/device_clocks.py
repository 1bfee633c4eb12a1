"""Whether `--lock-clocks` holds the clock of a GPU, and gives it back when the run ends, and when it is killed.

    python performance/device_clocks.py

Needs an NVIDIA GPU and, usually, root; else it says so and measures nothing. A program multiplies small matrices, which leaves
the GPU far from its power limit, while this script reads the clock: without the option, with it, after it, and after a run that
was killed with SIGKILL in its middle.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

LOAD = """
import sys, time, torch
a = torch.randn(512, 512, device="cuda")
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(200): a @ a
    torch.cuda.synchronize()
"""
WANTED = 1500


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if importlib.util.find_spec("torch") is None or not __import__("torch").cuda.is_available():
        print("no GPU here: nothing measured")
        return 0
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)

    def clock() -> int:
        return int(pynvml.nvmlDeviceGetClockInfo(gpu, pynvml.NVML_CLOCK_SM))

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "load.py").write_text(LOAD)
        _, ended = _under(folder, clock, "free")
        locked, _ = _under(folder, clock, f"locked at {WANTED}", f"--lock-clocks={WANTED}")
        after, _ = _under(folder, clock, "after it")
        _, killed = _under(folder, clock, "locked, and killed", f"--lock-clocks={WANTED}", kill=True)
        after_kill, _ = _under(folder, clock, "after the kill")
    met = (
        abs(locked - WANTED) <= 15 and after > WANTED + 100 and after_kill > WANTED + 100 and ended == 0 and killed != 0
    )
    print(f"bar: {'met' if met else 'missed'}")
    return int(not met)


def _under(folder: Path, clock, what: str, *options: str, kill: bool = False) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    """The median clock while the load runs, and the exit code of the run."""
    command = [sys.executable, "-m", "benchwright", "run", "--no-store", "--quiet", *options]
    command += ["--", sys.executable, "load.py", "8"]
    env = {**os.environ, "BENCHWRIGHT_BASE": str(folder / "base")}
    run = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL)
    seen: list[int] = []
    began = time.monotonic()
    while run.poll() is None:
        seen.append(clock())
        time.sleep(0.1)
        if kill and time.monotonic() - began > 9:
            run.send_signal(signal.SIGKILL)
    time.sleep(2)
    under_load = int(median(sorted(seen)[len(seen) // 2 :]))
    print(f"{what}: {under_load} MHz, exit code {run.returncode}, {time.monotonic() - began:.0f} s", flush=True)
    return under_load, run.returncode


if __name__ == "__main__":
    sys.exit(main())
