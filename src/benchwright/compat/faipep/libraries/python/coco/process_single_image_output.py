#!/usr/bin/env python3
"""Turns what Mask R-CNN printed for one image into boxes and masks of the image's size, for test_engine.py.

A blob is text as Caffe2 writes it: a line of sizes, a line of numbers. The mask of a box is scaled to the box, put where the
box lies, and kept where it is above one half, as run lengths down the columns. The file is JSON, whatever its name ends with:
reading a pickle would run what is in it.

Standard library only: it runs with any Python.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

NEEDED = ("class_nms", "score_nms", "bbox_nms", "mask_fcn_probs")
LEAST = 0.5  # of a mask: what is above it belongs to the object


class Blob(NamedTuple):
    shape: Tuple[int, ...]
    values: List[float]


class Place(NamedTuple):
    """Between which two cells of the mask a pixel lies, and how far from the first."""

    low: int
    high: int
    share: float


def read_blob(path: str) -> Blob:
    try:
        with open(path, encoding="utf-8") as file:
            sizes, numbers = file.readline().strip().strip(","), file.readline().strip().strip(",")
        shape = tuple(int(size) for size in sizes.split(","))
        values = [float(number) for number in numbers.split(",")] if numbers else []
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}") from None
    if math.prod(shape) != len(values):
        raise SystemExit(f"{path}: sizes {sizes} with {len(values)} numbers below them")
    if not all(map(math.isfinite, values)):
        raise SystemExit(f"{path}: holds a value that is not a number")
    return Blob(shape, values)


def read_blobs(names: str, files: str) -> Dict[str, Blob]:
    of, paths = names.split(","), files.split(",")
    if len(of) != len(paths):
        raise SystemExit(f"--blob-names names {len(of)} blobs, --blob-files {len(paths)} files")
    missing = [name for name in NEEDED if name not in of]
    if missing:
        raise SystemExit(f"--blob-names: {', '.join(missing)} missing")
    return {name: read_blob(path) for name, path in zip(of, paths)}


def places(length: int, cells: int) -> List[Place]:
    """Where the pixels of a row or column of `length` lie among `cells`, centre to centre."""
    found = []
    for at in range(length):
        where = min(max((at + 0.5) * cells / length - 0.5, 0.0), cells - 1.0)
        low = int(where)
        found.append(Place(low, min(low + 1, cells - 1), where - low))
    return found


def runs_of(mask: Sequence[Sequence[float]], box: Sequence[float], height: int, width: int) -> List[int]:
    """The pixels of the object as run lengths: so many outside, so many inside, in turn, down each column."""
    side = len(mask)
    # One empty cell around the mask, and the box that much larger: its edge is where the mask fades out.
    padded = [[0.0] * (side + 2), *([0.0, *row, 0.0] for row in mask), [0.0] * (side + 2)]
    grown = (side + 2.0) / side
    half_w, half_h = (box[2] - box[0]) * 0.5 * grown, (box[3] - box[1]) * 0.5 * grown
    middle_x, middle_y = (box[2] + box[0]) * 0.5, (box[3] + box[1]) * 0.5
    left, top = int(middle_x - half_w), int(middle_y - half_h)
    wide = max(int(middle_x + half_w) - left + 1, 1)
    high = max(int(middle_y + half_h) - top + 1, 1)
    rows = places(high, side + 2)
    runs, inside, since = [0], False, 0
    for x, across in enumerate(places(wide, side + 2), start=left):
        if not 0 <= x < width:
            continue
        line = [row[across.low] + (row[across.high] - row[across.low]) * across.share for row in padded]
        for y, down in enumerate(rows, start=top):
            if 0 <= y < height:
                value = line[down.low] + (line[down.high] - line[down.low]) * down.share
                since, inside = _seen(runs, inside, since, x * height + y, value > LEAST)
        since, inside = _seen(runs, inside, since, x * height + min(max(top + high, 0), height), False)
    runs[-1] += height * width - since
    return runs


def _seen(runs: List[int], inside: bool, since: int, at: int, now: bool) -> Tuple[int, bool]:
    """Counts the pixels since `since` as the same; begins a new run where it changes."""
    runs[-1] += at - since
    if now != inside:
        runs.append(0)
    return at, now


def masks_of(blobs: Dict[str, Blob], count: int, height: int, width: int) -> List[Dict[str, Any]]:
    """One for each box: that of its class."""
    shape, values = blobs["mask_fcn_probs"]
    if count and (len(shape) != 4 or shape[0] != count or shape[2] != shape[3]):
        raise SystemExit(f"mask_fcn_probs: sizes {shape} for {count} boxes")
    boxes, classes = blobs["bbox_nms"].values, blobs["class_nms"].values
    found = []
    for number in range(count):
        side, kind = shape[2], int(classes[number])
        if not 0 <= kind < shape[1]:
            raise SystemExit(f"class_nms: class {kind} of {shape[1]}")
        begin = (number * shape[1] + kind) * side * side
        mask = [values[begin + row * side : begin + (row + 1) * side] for row in range(side)]
        counts = runs_of(mask, boxes[number * 4 : number * 4 + 4], height, width)
        found.append({"size": [height, width], "counts": counts})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Turn the output for one image into boxes and masks.")
    parser.add_argument("--blob-names", required=True, help=f"the blobs, separated by commas: {', '.join(NEEDED)}")
    parser.add_argument("--blob-files", required=True, help="their files, in the same order")
    parser.add_argument("--im-info", required=True, help="the image, as json_dataset.py lists it")
    parser.add_argument("--output-file", required=True, help="file to write to")
    parser.add_argument("--rle-encode", action="store_true", help="accepted: masks are always run lengths")
    args = parser.parse_args()
    try:
        with open(args.im_info, encoding="utf-8") as file:
            image = json.load(file)
        height, width = int(image["height"]), int(image["width"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{args.im_info}: is not one image with height and width: {error}") from None
    blobs = read_blobs(args.blob_names, args.blob_files)
    count = blobs["bbox_nms"].shape[0]
    scores, boxes = blobs["score_nms"].values, blobs["bbox_nms"].values
    if len(boxes) != 4 * count or len(scores) != count or len(blobs["class_nms"].values) != count:
        raise SystemExit(f"bbox_nms, score_nms and class_nms differ: {count} boxes, {len(scores)} scores")
    content = {
        "image_id": image.get("id"),
        "classids": [int(kind) for kind in blobs["class_nms"].values],
        "boxes": [[*boxes[at * 4 : at * 4 + 4], scores[at]] for at in range(count)],
        "im_masks": masks_of(blobs, count, height, width),
    }
    with open(f"{args.output_file}.aside", "w", encoding="utf-8") as out:
        json.dump(content, out)
    os.replace(f"{args.output_file}.aside", args.output_file)


if __name__ == "__main__":
    main()
