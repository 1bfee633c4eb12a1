"""Which runtimes work on a GPU, and why the others do not: each measured, or told, under the same contract.

    python performance/device_runtimes.py [--quick]

Runs `bw run` on two small models (a transformer and a convolutional network) with each runtime and precision on CUDA, and prints
latency, error against the reference, what executed it, and which arithmetic it used; for a runtime that cannot, the reason as a
user reads it. Bar: every row is either measured with its outputs checked, or has a reason that names what is missing. Without a
CUDA device it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

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
MODELS = {
    "transformer.py": """
import torch
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval()
with torch.no_grad():
    model(torch.randn(8, 128, 256))
""",
    "convolutions.py": """
import torch
torch.manual_seed(0)
layers = []
for inside, outside in ((3, 64), (64, 128), (128, 256)):
    layers += [torch.nn.Conv2d(inside, outside, 3, stride=2, padding=1), torch.nn.BatchNorm2d(outside), torch.nn.ReLU()]
model = torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(256, 1000)).eval()
with torch.no_grad():
    model(torch.randn(8, 3, 224, 224))
""",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fp32 only")
    parser.add_argument("--runtime", help="only these, with commas between them")
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    if given.device == "cuda" and (
        importlib.util.find_spec("torch") is None or not __import__("torch").cuda.is_available()
    ):
        print("no GPU here: nothing measured")
        return 0
    runtimes = given.runtime.split(",") if given.runtime else RUNTIMES
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        for name, text in MODELS.items():
            Path(place, name).write_text(text)
        for runtime in runtimes:
            for precision in ("fp32",) if given.quick else ("fp32", "bf16", "fp16"):
                for row in _rows(Path(place), runtime, given.device, precision):
                    wrong += row[0]
                    print(row[1], flush=True)
    print(f"bar: {'met' if not wrong else f'missed in {wrong} rows'}")
    return int(wrong > 0)


def _rows(folder: Path, runtime: str, device: str, precision: str) -> list[tuple[bool, str]]:
    command = [sys.executable, "-m", "benchwright", "run", *MODELS, "--device", device, "--runtime", runtime]
    command += ["--precision", precision, "--stop", "1s", "--no-store", "--json"]
    env = {**os.environ, "BENCHWRIGHT_BASE": str(folder / "base")}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    if not done.stdout.strip().startswith("{"):
        why = (done.stderr.strip() or "no output").splitlines()[-1]
        return [("unknown" not in why, f"{runtime:26} {precision:5} not run: {why}")]
    return [_row(runtime, precision, result) for result in json.loads(done.stdout)["results"]]


def _row(runtime: str, precision: str, result: dict) -> tuple[bool, str]:  # type: ignore[type-arg]
    begin = f"{runtime:26} {precision:5} {(result.get('model') or {}).get('class') or result['benchmark'][:18]:18}"
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
