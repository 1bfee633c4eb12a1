"""Which runtimes work on a GPU, and why the others do not: each measured, or told, under the same contract.

    python performance/device_runtimes.py [--quick] [--runtime a,b] [--models a,b] [--dry]

Runs `bw run` on models of a zoo (no script has to be searched for them) with each runtime and precision on CUDA, and prints, as
each ends, latency, error against the reference, what executed it, which arithmetic it used, and the seconds it took; for a
runtime that cannot, the reason as a user reads it. Bar: every row is either measured with its outputs checked, or has a reason
that names what is missing. --quick: a small transformer in fp32, eager, compiled and with CUDA graphs. Without a CUDA device it
says so and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from _device import add_device_options, device_for

RUNTIMES = (
    "torch-eager",
    "torch-compile",
    "torch-compile-max-autotune",
    "torch-compile-cuda-graphs",
    "aot-inductor",
    "onnxruntime",
    "onnxruntime-tensorrt",
    "torch-tensorrt",
)
QUICK = ("torch-eager", "torch-compile", "torch-compile-cuda-graphs")
MODELS = "transformers:bert,torchvision:resnet18"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three runtimes, one small model, fp32")
    parser.add_argument("--runtime", help="only these, with commas between them")
    parser.add_argument("--models", default=MODELS, help=f"models of zoos (default {MODELS})")
    parser.add_argument("--precision", default="fp32,bf16,fp16")
    parser.add_argument("--timeout", default="100s", help="of each launch (default 100s)")
    add_device_options(parser)
    given = parser.parse_args()
    device = device_for(given)
    if device is None:
        return 0
    runtimes = given.runtime.split(",") if given.runtime else QUICK if given.quick else RUNTIMES
    models = MODELS.split(",")[:1] if given.quick and given.models == MODELS else given.models.split(",")
    precisions = ["fp32"] if given.quick else given.precision.split(",")
    wrong = 0
    with tempfile.TemporaryDirectory() as base:
        for runtime in runtimes:
            for precision in precisions:
                words = [*models, "--device", device, "--runtime", runtime, "--precision", precision]
                wrong += _told([*words, "--timeout", given.timeout], base, runtime, precision)
    print(f"bar: {'met' if not wrong else f'missed in {wrong} rows'}")
    return int(wrong > 0)


def _told(words: list[str], base: str, runtime: str, precision: str) -> int:
    """Prints the rows of one run; how many are neither measured nor explained."""
    command = [sys.executable, "-m", "benchwright", "run", *words, "--stop", "1s", "--warmup", "0.3s"]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--scale", "tiny", "--no-store", "--json"],
        env={**os.environ, "BENCHWRIGHT_BASE": base},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stdout.strip().startswith("{"):
        rows = [_row(runtime, precision, result) for result in json.loads(done.stdout)["results"]]
    else:
        why = (done.stderr.strip() or "no output").splitlines()[-1]
        rows = [("unknown" not in why, f"{runtime:26} {precision:5} not run: {why}")]
    for _, text in rows:
        print(text)
    print(f"{'':26} {time.monotonic() - began:.0f} s", flush=True)
    return sum(wrong for wrong, _ in rows)


def _row(runtime: str, precision: str, result: dict) -> tuple[bool, str]:  # type: ignore[type-arg]
    begin = f"{runtime:26} {precision:5} {result['benchmark'].partition('@')[0][:28]:28}"
    found = {m["metric"]: m["value"] for m in result["metrics"]}
    if result["status"] != "ok":
        return not result["detail"], f"{begin} {result['status']} ({result['reason']}): {result['detail']}"
    told = result["launches"][0]["facts"].get("runtime") or {}
    keys = ("tf32", "attention", "compile_mode", "cudagraph_skips", "cudnn_benchmark", "deterministic")
    how = {key: told["details"][key] for key in keys if told.get("details", {}).get(key) is not None}
    return "error.relative_l2" not in found, (
        f"{begin} {found['latency'] * 1e3:8.3f} ms  error {found.get('error.relative_l2', float('nan')):.1e}  "
        f"build {found.get('time.build', 0):6.1f} s  {told.get('provider')}, {told.get('precision')} {how}"
    )


if __name__ == "__main__":
    sys.exit(main())
