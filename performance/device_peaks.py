"""Whether the peaks that `bw run system` measures on a GPU are those that a sweep by hand finds.

    python performance/device_peaks.py [--quick]

Needs a CUDA device; without one it says so and measures nothing. By hand: cuBLAS through torch over several shapes, and
passes over arrays of several lengths, each for the same time as ours, between two synchronisations; the best one
counts. For each peak the sweep comes first, then our run. Bar: within 3 % of the sweep's best.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 8192, 8192), (16384, 16384, 16384))
MIB = (512, 2048, 4096)
PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8")
OPERATIONS = ("copy", "add", "triad")
SWEEP = """
import json, sys, time, torch
names, seconds, shapes, lengths = map(json.loads, sys.argv[1:])
gpu = "cuda"

def rate(work, amount):
    for _ in range(5):
        work()
    torch.cuda.synchronize()
    done, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for _ in range(10):
            work()
        torch.cuda.synchronize()
        done += 10
    return done * amount / (time.perf_counter() - begin)

def product(what, m, n, k):
    if what == "int8":
        a, b = (torch.randint(-128, 128, s, device=gpu, dtype=torch.int8) for s in ((m, k), (n, k)))
        return lambda: torch._int_mm(a, b.t())
    a, b = torch.randn(m, k, device=gpu), torch.randn(n, k, device=gpu)
    if what == "fp8":
        a, b, one = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), torch.ones((), device=gpu)
        return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(what, torch.float32)
    a, b = a.to(kind), b.to(kind)
    return lambda: torch.mm(a, b.t())

def swept(what):
    torch.backends.cuda.matmul.allow_tf32 = what == "tf32"
    found = {}
    if what in ("copy", "add", "triad"):
        for mib in lengths:
            x, y, z = (torch.rand(mib << 18, device=gpu) for _ in range(3))
            work = {"copy": lambda: y.copy_(x), "add": lambda: torch.add(x, y, out=z), "triad": lambda: torch.add(x, y, alpha=3.0, out=z)}
            found[f"{mib} MiB"] = rate(work[what], (2 if what == "copy" else 3) * x.nbytes)
            del x, y, z, work
        return found
    for m, n, k in shapes:
        work = product(what, m, n, k)
        found[f"{m}x{n}x{k}"] = rate(work, 2 * m * n * k)
        del work
    return found

print(json.dumps({what: swept(what) for what in names}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 s for each shape and launch, instead of 3")
    seconds = 1.0 if parser.parse_args().quick else 3.0
    if importlib.util.find_spec("torch") is None or not __import__("torch").cuda.is_available():
        print("no GPU here: nothing measured")
        return 0
    missed = []
    print(f"{'peak':8} {'ours':>12} {'by hand':>12} {'ratio':>8}   best by hand")
    names = (*PRECISIONS, *OPERATIONS)
    for what in names:
        swept = _swept((what,), seconds)[what]
        best = max(swept, key=swept.__getitem__)
        ours = _ours(what, seconds)
        ratio = ours / swept[best]
        missed += [what] if abs(ratio - 1) > 0.03 else []
        others = ", ".join(f"{shape} {value / 1e12:.4g}" for shape, value in swept.items())
        print(
            f"{what:8} {ours / 1e12:10.4g} T {swept[best] / 1e12:10.4g} T {ratio:8.4f}   {best} ({others})", flush=True
        )
    print(f"bar 3 %: {'missed by ' + ', '.join(missed) if missed else 'met'}")
    return int(bool(missed))


def _swept(names: Sequence[str], seconds: float) -> dict[str, dict[str, float]]:
    words = [json.dumps(each) for each in (names, seconds, SHAPES, MIB)]
    done = subprocess.run([sys.executable, "-c", SWEEP, *words], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


def _ours(what: str, seconds: float) -> float:
    """The highest rate of one launch, as `bw run system` reports it."""
    name = ("memory-" if what in OPERATIONS else "matmul-") + what
    command = [sys.executable, "-m", "benchwright", "run", "system", "--select", name, "--use-current-env"]
    command += ["--stop", f"{seconds:g}s", "--json", "--no-store", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "BENCHWRIGHT_BASE": str(Path(folder) / "base")}
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
    (result,) = [r for r in json.loads(done.stdout)["results"] if r["benchmark"] == name]
    return float(next(m["value"] for m in result["metrics"] if m["metric"] == "rate"))


if __name__ == "__main__":
    sys.exit(main())
