"""What showing progress costs while something is measured: CPU of the thread that draws, as a share of one core.

    python performance/progress_cost.py [--seconds 10] [--quick]

`run` on a pseudo-terminal: a command that only sleeps, a loop of 10 ms steps, a loop that writes as many steps as it can,
and 16 jobs together. Bar: 0.5 % of a core. Exits with 1 if it is missed.
"""

from __future__ import annotations

import argparse
import os
import pty
import subprocess
import sys
import tempfile
import threading

BAR_PERCENT = 0.5
SLEEP = "import time; time.sleep({seconds})"
LOOP = """\
import time
from benchprobe import iterate
end = time.monotonic() + {seconds}
def batches():
    while time.monotonic() < end:
        yield [0]
for batch in iterate("train", batches(), batch_size=1):
    {body}
"""
# benchwright itself, but for the clock of the thread that draws.
RUN = """\
import sys, time
from benchwright.runner.progress import Progress
from benchwright.cli.main import main
show = Progress._show
def clocked(self):
    show(self)
    with open(sys.argv[1], "w") as file:
        file.write(str(time.thread_time()))
Progress._show = clocked
main(sys.argv[2:])
"""


def drawing_cpu_s(code: str, base: str, *options: str) -> float:
    main, side = pty.openpty()
    threading.Thread(target=_drain, args=(main,), daemon=True).start()
    words = ["run", "--no-store", "--base", base, *options, "--", sys.executable, "-c", code]
    report = os.path.join(base, "cpu")
    env = {k: v for k, v in os.environ.items() if k != "CI"} | {"TERM": "xterm"}
    subprocess.run([sys.executable, "-c", RUN, report, *words], stdout=side, stderr=side, env=env, check=True)
    os.close(side)
    with open(report, encoding="utf-8") as file:
        return float(file.read())


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        os.close(fd)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    seconds = 4.0 if options.quick else options.seconds
    cases = (
        ("command that sleeps", SLEEP, ()),
        ("loop of 10 ms steps", LOOP.replace("{body}", "time.sleep(0.01)"), ()),
        ("loop at full speed", LOOP.replace("{body}", "pass"), ()),
        ("16 jobs together", LOOP.replace("{body}", "time.sleep(0.1)"), ("--jobs", "16")),
    )
    missed = False
    with tempfile.TemporaryDirectory() as base:
        for name, code, more in cases:
            share = 100 * drawing_cpu_s(code.format(seconds=seconds), base, *more) / seconds
            missed = missed or share > BAR_PERCENT
            print(f"{name:20} {share:.2f} % of a core")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
