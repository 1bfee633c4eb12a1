#!/usr/bin/env python3
"""Lists the images of an ImageNet folder with the index and label of their class.

A line of the label file is `folder,label`; its number, from 0, is the index of the class. Without one, the folders count in
the order of their names: ImageNet's own, so that `{FAIPEPROOT}/libraries/python/labels.txt`, which lists them in that order,
need not exist. Writes `index,label,path` for each image and, if asked to, the paths alone. Images of a class come in the order
of their names; --shuffle mixes them, the same way each time unless --seed says otherwise.

Standard library only: it runs with any Python.
"""

from __future__ import annotations

import argparse
import os
import random
from typing import Iterable, List, Optional, Tuple

Class = Tuple[str, str]  # folder and label
Image = Tuple[int, str, str]  # index and label of its class, path


def folders_in(root: str) -> List[Class]:
    """Without labels: the index of a class is the place of its folder among the names, as in ImageNet."""
    names = sorted(name for name in os.listdir(root) if os.path.isdir(os.path.join(root, name)))
    return [(name, name) for name in names]


def is_imagenets(path: str) -> bool:
    """Whether it is the list of ImageNet's classes that FAI-PEP has beside this script."""
    return os.path.abspath(path) == os.path.join(os.path.dirname(os.path.abspath(__file__)), "labels.txt")


def read_classes(path: str) -> List[Class]:
    found = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                folder, comma, label = line.strip().partition(",")
                if not comma:
                    raise SystemExit(f"{path}:{number}: write folder,label")
                found.append((folder.strip(), label.partition(",")[0].strip()))
    if not found:
        raise SystemExit(f"{path}: holds no class")
    return found


def images_of(root: str, classes: List[Class], limit: Optional[int], mixed: Optional[random.Random]) -> List[Image]:
    """Index, label and path of each image; at most `limit` of a class."""
    found: List[Image] = []
    for index, (folder, label) in enumerate(classes):
        place = os.path.join(os.path.abspath(root), folder)
        try:
            names = sorted(name for name in os.listdir(place) if not name.startswith("."))
        except OSError as error:
            raise SystemExit(f"{place}: {error.strerror}") from None
        if mixed is not None:
            mixed.shuffle(names)
        found += [(index, label, os.path.join(place, name)) for name in names[:limit]]
    return found


def write(path: str, lines: Iterable[str]) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    with open(f"{path}.aside", "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.replace(f"{path}.aside", path)


def main() -> None:
    parser = argparse.ArgumentParser(description="List images of an ImageNet folder with their classes.")
    parser.add_argument("--image-dir", required=True, help="folder with one folder of images for each class")
    parser.add_argument("--label-file", help="the classes: folder,label on each line; default: the folders by name")
    parser.add_argument("--output-label-file", required=True, help="file to write index,label,path to")
    parser.add_argument("--output-image-file", help="file to write the paths to")
    parser.add_argument("--limit-per-category", type=int, help="at most this many images of a class")
    parser.add_argument("--limit-files", type=int, help="at most this many images in all")
    parser.add_argument("--shuffle", action="store_true", help="mix the images")
    parser.add_argument("--seed", type=int, default=0, help="how they are mixed")
    args = parser.parse_args()
    mixed = random.Random(args.seed) if args.shuffle else None
    try:
        listed = args.label_file and not is_imagenets(args.label_file)
        classes = read_classes(args.label_file) if listed else folders_in(args.image_dir)
        found = images_of(args.image_dir, classes, args.limit_per_category, mixed)
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(str(error)) from None
    if mixed is not None:
        mixed.shuffle(found)
    found = found[: args.limit_files]
    if not found:
        raise SystemExit(f"{args.image_dir}: no image found")
    write(args.output_label_file, [f"{index},{label},{path}" for index, label, path in found])
    if args.output_image_file:
        write(args.output_image_file, [path for _, _, path in found])


if __name__ == "__main__":
    main()
