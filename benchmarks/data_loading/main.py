#!/usr/bin/env python3
"""The input pipeline of image training alone: JPEG files read, decoded, augmented and put into batches. No model."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

import torch

from benchprobe import iterate
from workload.claims import Claim, conclude
from workload.image_files import DEVIATION, MEAN, Endless, Files, ImageFiles, endless_loader
from workload.image_patterns import class_patterns
from workload.options import data_folder, parse, parser
from workload.prepared import needed

NAME = "data_loading"
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"batch_size": 16, "num_workers": 1, "side": 64},
    "small": {"batch_size": 32, "num_workers": 2, "side": 128},
    "full": {"batch_size": 128, "num_workers": 8, "side": 224},
}
FILES = {
    "tiny": Files(count=128, width=96, height=72),
    "small": Files(count=512, width=256, height=192),
    "full": Files(count=2048, width=500, height=375),
}


def arguments(argv: list[str] | None = None) -> Any:
    found = parser(str(__doc__), SIZES)
    found.add_argument("--num-workers", type=int, help="processes that decode; 0: this one does it  [by size]")
    found.add_argument("--transform", choices=("train", "evaluate"), default="train", help="what is done to an image")
    found.add_argument("--side", type=int, help="of the images that come out  [by size]")
    return parse(found, SIZES, argv)


def dataset(options: Any) -> ImageFiles:
    folder = needed(data_folder(options, NAME))
    return ImageFiles(folder, options.side, training=options.transform == "train", seed=options.seed)


def rounds(batches: Iterable[Any], count: int) -> Iterator[int]:
    """The images of `count` batches at a time: one of each worker. They finish at about the same time, so the time of a
    single batch tells nothing: that of the first is long, those of the others are next to nothing."""
    source = iter(batches)
    while images := sum(len(labels) for _, labels in islice(source, count)):
        yield images


def main(options: Any) -> int:
    if options.threads:
        torch.set_num_threads(options.threads)
    if options.check:
        return check(options)
    together = max(1, options.num_workers)
    source = rounds(endless_loader(dataset(options), options.batch_size, options.num_workers), together)
    for _ in iterate("load", islice(source, options.steps), batch_size=options.batch_size * together, unit="images"):
        pass
    return 0


def check(options: Any) -> int:
    """Every file once before any comes again, with its label and its colours, whoever decodes it."""
    images = dataset(options)
    count = len(images) // options.batch_size
    alone, helped = (list(islice(endless_loader(images, options.batch_size, n), count)) for n in (0, 2))
    drawn = [number for _, number in islice(Endless(len(images), options.seed), len(images))]
    expected = [images.label(number) for number in drawn[: count * options.batch_size]]
    shapes = {(tuple(pixels.shape), pixels.dtype) for pixels, _ in helped}
    wanted = {((options.batch_size, 3, options.side, options.side), torch.float32)}
    same = all(torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(alone, helped, strict=True))
    claims = [
        Claim("files", FILES[options.size].count, len(images), 0.0),
        Claim("every file once in a round", 1, float(sorted(drawn) == list(range(len(images))))),
        Claim(
            "every image has the label of its file", 1, float(torch.cat([b for _, b in helped]).tolist() == expected)
        ),
        Claim("batches have the shape and type they should", 1, float(shapes == wanted)),
        Claim("two workers make the batches that none would", 1, float(same)),
        Claim("mean colours within 8 of 255", 1, float(colour_error(options, helped) < 8)),
    ]
    return conclude(claims)


def colour_error(options: Any, batches: list[Any]) -> float:
    """How far the mean colour of an image is from that of its class, for the median image."""
    patterns = torch.from_numpy(class_patterns(FILES[options.size].classes, FILES[options.size].seed))
    pixels, labels = (torch.cat([batch[i] for batch in batches]) for i in (0, 1))
    found = pixels.mean((2, 3)) * torch.tensor(DEVIATION) + torch.tensor(MEAN)
    return float((found * 255 - (patterns.mean((2, 3))[labels] + 1) * 127.5).abs().median())


if __name__ == "__main__":
    sys.exit(main(arguments()))
