#!/usr/bin/env python3
"""How large each image is once it is scaled, and by how much: what Mask R-CNN takes as `im_info`.

The shorter side becomes --min-size, unless the longer one would pass --max-size: then that becomes --max-size. Writes a line
with the sizes of the tensor, `images, 3`, then `height, width, scale` for each image.

Standard library only: it runs with any Python.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import List, Tuple


def read_sizes(path: str) -> List[Tuple[int, int]]:
    """Height and width of each image: lines of JSON, one object, or a list of them."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read().strip()
        images = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
        found = [(int(image["height"]), int(image["width"])) for image in images]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}") from None
    except (KeyError, TypeError):
        raise SystemExit(f"{path}: an image without height and width") from None
    if not found or min(min(size) for size in found) < 1:
        raise SystemExit(f"{path}: {'an image of no size' if found else 'holds no image'}")
    return found


def scale_of(height: int, width: int, least: int, most: int) -> float:
    scale = least / min(height, width)
    return scale if round(scale * max(height, width)) <= most else most / max(height, width)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the scaled sizes of images.")
    parser.add_argument("--dataset-file", required=True, help="the images, as json_dataset.py lists them")
    parser.add_argument("--min-size", type=int, required=True, help="of the shorter side, once scaled")
    parser.add_argument("--max-size", type=int, required=True, help="of the longer side, once scaled")
    parser.add_argument("--batch-size", type=int, default=-1, help="the number of images must be a multiple of it")
    parser.add_argument("--output-file", required=True, help="file to write to")
    args = parser.parse_args()
    if not 1 <= args.min_size <= args.max_size:
        parser.error("--min-size must be at least 1, and --max-size at least as much")
    sizes = read_sizes(args.dataset_file)
    if args.batch_size > 0 and len(sizes) % args.batch_size:
        raise SystemExit(f"{args.dataset_file}: {len(sizes)} images are not a multiple of {args.batch_size}")
    lines = [f"{len(sizes)}, 3"]
    for height, width in sizes:
        scale = scale_of(height, width, args.min_size, args.max_size)
        lines.append(f"{round(height * scale)}, {round(width * scale)}, {scale}")
    with open(f"{args.output_file}.aside", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(f"{args.output_file}.aside", args.output_file)


if __name__ == "__main__":
    main()
