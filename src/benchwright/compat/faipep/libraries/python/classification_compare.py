#!/usr/bin/env python3
"""How many images a model classified correctly: its output against the labels, one line an image.

The output is text as Caffe2 writes it: a line of sizes, a line of numbers, both separated by commas, once or once for each
image; or one number a line. A line of the labels is `class index,label,path`. Prints one record for the number of correct
images and one for their percentage; `values` say for each image whether it was.

Standard library only: it runs with any Python.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from typing import Any, Dict, List


def read_output(path: str, images: int) -> List[List[float]]:
    """The scores of each image."""
    with open(path, encoding="utf-8") as file:
        lines = [(number, line.strip().strip(",")) for number, line in enumerate(file, start=1) if line.strip()]
    if not lines:
        raise SystemExit(f"{path}: holds no number")
    if not any("," in line for _, line in lines):
        return in_rows([number_in(path, at, line) for at, line in lines], images, path)
    if len(lines) % 2:
        raise SystemExit(f"{path}:{lines[-1][0]}: a line of sizes without its numbers")
    scores: List[float] = []
    for (at, sizes), (below, numbers) in zip(lines[::2], lines[1::2]):
        shape = [int(size) if size.strip().isdigit() else -1 for size in sizes.split(",")]
        values = [number_in(path, below, number) for number in numbers.split(",")]
        if min(shape) < 1 or math.prod(shape) != len(values):
            raise SystemExit(f"{path}:{at}: sizes {sizes} with {len(values)} numbers below them")
        scores += values
    return in_rows(scores, images, path)


def number_in(path: str, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise SystemExit(f"{path}:{line}: {text.strip()[:40]!r} is not a number") from None
    if not math.isfinite(value):
        raise SystemExit(f"{path}:{line}: a score is {value}")
    return value


def in_rows(scores: List[float], images: int, path: str) -> List[List[float]]:
    if len(scores) % images or len(scores) // images < 2:
        raise SystemExit(f"{path}: {len(scores)} scores for {images} images")
    width = len(scores) // images
    return [scores[at : at + width] for at in range(0, len(scores), width)]


def read_labels(path: str) -> List[int]:
    """The index of the right class of each image."""
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                index = line.split(",")[0].strip()
                if not index.isdigit():
                    raise SystemExit(f"{path}:{number}: {index[:40]!r} is not the index of a class")
                found.append(int(index))
    if not found:
        raise SystemExit(f"{path}: holds no label")
    return found


def is_correct(scores: List[float], label: int, top: int) -> bool:
    """Whether fewer than `top` classes have a higher score; of equal ones, the first come first."""
    if label >= len(scores):
        raise SystemExit(f"class {label} is beyond the {len(scores)} scores of an image")
    mine = scores[label]
    before = sum(1 for at, score in enumerate(scores) if score > mine or (score == mine and at < label))
    return before < top


def records(name: str, top: int, values: List[int]) -> Dict[str, Any]:
    """By the name that an aggregate uses."""
    correct = sum(values)
    figures = (("number", correct, "number"), ("percent", correct * 100.0 / len(values), "percent"))
    made: Dict[str, Any] = {}
    for word, figure, unit in figures:
        metric = f"{word}_of_top{top}_corrects"
        summary: Dict[str, float] = {"num_runs": len(values), "mean": figure}
        summary.update(dict.fromkeys(("p0", "p10", "p50", "p90", "p100"), figure))
        record = {"type": name, "metric": metric, "unit": unit, "values": values, "summary": summary}
        made[f"{name}_{metric}"] = record
    return made


def write(path: str, content: Dict[str, Any]) -> None:
    """Whole or not at all."""
    aside = f"{path}.aside"
    with open(aside, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2, sort_keys=True)
    os.replace(aside, path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare a model's output with the labels of its images.")
    parser.add_argument("--name", required=True, help="type of the records, such as the model's name")
    parser.add_argument("--benchmark-output", required=True, help="the model's output, as text")
    parser.add_argument("--labels", required=True, help="the labels: index,label,path on each line")
    parser.add_argument("--top", type=int, default=1, help="an image is correct if its class is among this many best")
    parser.add_argument("--metric-keyword", default="", help="identifier to print before each record")
    parser.add_argument("--result-file", help="also write the records to this file, for the aggregate")
    args = parser.parse_args()
    if args.top < 1:
        parser.error("--top must be at least 1")
    try:
        labels = read_labels(args.labels)
        rows = read_output(args.benchmark_output, len(labels))
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(str(error)) from None
    values = [int(is_correct(scores, label, args.top)) for scores, label in zip(rows, labels)]
    found = records(args.name, args.top, values)
    for record in found.values():
        print(f"{args.metric_keyword.strip()} {json.dumps(record, sort_keys=True)}".strip())
    if args.result_file:
        write(args.result_file, found)


if __name__ == "__main__":
    main()
