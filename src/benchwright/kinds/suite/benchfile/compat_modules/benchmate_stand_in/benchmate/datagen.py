"""Pictures of noise in the layout of ImageNet."""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import random
import sys
from typing import Any, NamedTuple

from . import unknown_names

CLASSES = 1000


class Picture(NamedTuple):
    number: int
    folder: str
    prefix: str
    size: tuple[int, int, int]


def device_count() -> int:
    """How many accelerators there are; 1 where nobody knows."""
    try:
        accelerator: Any = importlib.import_module("torchcompat.core")
        return int(accelerator.device_count())
    except Exception:  # whatever torchcompat raises where there is none
        return 1


def write(picture: Picture) -> None:
    """The same number gives the same picture. Names are those of ImageNet, which some loaders expect."""
    image: Any = importlib.import_module("PIL.Image")
    label = picture.number % CLASSES
    name = f"{picture.prefix}{picture.number:08d}" if picture.prefix else f"{label}_{picture.number}"
    folder = os.path.join(picture.folder, str(label))
    os.makedirs(folder, exist_ok=True)
    _, height, width = picture.size
    noise = random.Random(picture.number).randbytes(3 * height * width)  # noqa: S311
    image.frombytes("RGB", (width, height), noise).save(os.path.join(folder, f"{name}.JPEG"))


def generate(folder: str, start: int, stop: int, prefix: str, size: tuple[int, int, int]) -> None:
    pictures = [Picture(number, folder, prefix, size) for number in range(start, stop)]
    with multiprocessing.get_context("spawn").Pool(min(os.cpu_count() or 1, 8)) as pool:
        for done, _ in enumerate(pool.imap_unordered(write, pictures, chunksize=16), start=1):
            if done % 1000 == 0 or done == len(pictures):
                print(f"{os.path.basename(folder)}: {done} of {len(pictures)} pictures", flush=True)


def count_pictures(folder: str) -> int:
    return sum(name.endswith(".JPEG") for _, _, names in os.walk(folder) for name in names)


def fakeimagenet_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--batch-count", type=int, default=60)
    parser.add_argument("--device-count", type=int, default=None)
    parser.add_argument("--image-size", type=int, nargs=3, default=[3, 384, 384])
    parser.add_argument("--val", type=float, default=0.1)
    parser.add_argument("--test", type=float, default=0.1)
    parser.add_argument("--output", default=os.getenv("MILABENCH_DIR_DATA"))
    return parser.parse_known_args(sys.argv[1:] if argv is None else argv)[0]


def generate_fakeimagenet(args: Any = None) -> None:
    """FakeImageNet/{train,val,test} in the data folder; only what is missing. $MILABENCH_TESTING_PREPARE = batch size, count."""
    args = fakeimagenet_args() if args is None else args
    if given := os.getenv("MILABENCH_TESTING_PREPARE"):
        args.batch_size, args.batch_count = map(int, given.split(","))
    if args.output is None:
        raise SystemExit("no folder for the pictures: give --output, or set MILABENCH_DIR_DATA")
    devices = device_count() if args.device_count is None else args.device_count
    total = args.batch_size * args.batch_count * max(1, devices)
    wanted = {"train": total, "val": int(total * args.val), "test": int(total * args.test)}
    root = os.path.join(args.output, "FakeImageNet")
    for split, count in wanted.items():
        folder = os.path.join(root, split)
        there = count_pictures(folder)
        if there < count:
            generate(folder, there, count, "" if split == "train" else f"ILSVRC2012_{split}_", tuple(args.image_size))
    os.makedirs(root, exist_ok=True)
    labels = sorted({int(n) for s in wanted for n in _folders(os.path.join(root, s)) if n.isdigit()})
    with open(os.path.join(root, "labels.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{label},{label}\n" for label in labels)
    with open(os.path.join(root, "done"), "w", encoding="utf-8") as file:
        json.dump(wanted, file)


def _folders(path: str) -> list[str]:
    return os.listdir(path) if os.path.isdir(path) else []


__getattr__ = unknown_names(__name__)

if __name__ == "__main__":
    generate_fakeimagenet()
