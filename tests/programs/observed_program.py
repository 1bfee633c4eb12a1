"""Stands in for a benchmark program: prints the records that its arguments ask for, and writes its output as text.

`--records FORM`: json, older, text, tflite, operators, half, nothing; `--iter N` of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--records", default="json")
parser.add_argument("--iter", type=int, default=5)
parser.add_argument("--output_folder")
parser.add_argument("--scores", default="0.1,0.7,0.2")
parser.add_argument("--output", default="softmax")
args, _ = parser.parse_known_args()


def told(kind: str, value: float) -> str:
    return "Caffe2Observer " + json.dumps({"type": kind, "metric": "latency", "unit": "us", "value": str(value)})


if args.records == "tflite":
    print("INFO: count=1 curr=5000")
    print("INFO: Running benchmark for at least 5 iterations")
    print("INFO: count=50 first=120 curr=91 min=90 max=120 avg=98.5 std=7", flush=True)
for number in range(args.iter if args.records not in ("tflite", "nothing") else 0):
    value = 100.0 + number
    if args.records == "older":
        print("PyTorchObserver " + json.dumps({"NET": {"latency": {"value": value, "unit": "us"}}}))
    elif args.records == "text":
        rows = [f"NET_DELAY - {value} (us)"]
        sys.stderr.writelines(f"Caffe2Observer {row}\n" for row in ("Delay Start", *rows, "Delay End"))
    else:
        if args.records != "operators":
            print(told("NET", value), flush=True)
        for operator in ("ID_0_Conv", "ID_1_Relu"):
            print(told(operator, value / (2 if operator.endswith("Conv") else 4)), file=sys.stderr, flush=True)
if args.records == "half":
    print(told("NET", 1.0)[:-9], end="", flush=True)
if args.output_folder:
    scores = args.scores.split(",")
    Path(args.output_folder, f"{args.output}.txt").write_text(f"1,{len(scores)},\n{args.scores},\n")
