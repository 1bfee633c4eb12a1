"""Multiplies matrices in plain Python and prints the time of each multiplication, as a benchmark program does.

Every record is a line: `PyTorchObserver`, then JSON. `NET` is the whole; the two halves of it are printed as operators.
"""

import argparse
import json
import random
import time

OBSERVER = "PyTorchObserver"


def told(kind, seconds):
    print(OBSERVER, json.dumps({"type": kind, "metric": "latency", "unit": "us", "value": str(seconds * 1e6)}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--iter", type=int, default=10)
    options = parser.parse_args()
    random.seed(0)
    left, right = ([[random.random() for _ in range(options.size)] for _ in range(options.size)] for _ in range(2))
    for number in range(options.warmup + options.iter):
        began = time.perf_counter()
        columns = [list(column) for column in zip(*right)]  # noqa: B905  # for any Python 3
        turned = time.perf_counter()
        [[sum(map(float.__mul__, row, column)) for column in columns] for row in left]
        ended = time.perf_counter()
        if number >= options.warmup:
            told("NET", ended - began)
            told("transpose", turned - began)
            told("multiply", ended - turned)


if __name__ == "__main__":
    main()
