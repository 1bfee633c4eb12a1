#!/usr/bin/env python3
"""Lists the images of a COCO annotation file, in the order of their ids: one line of JSON an image, and the paths alone.

Standard library only: it runs with any Python.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, Dict, Iterable, List, Optional

UNWANTED = ("date_captured", "license", "file_name")


def images_of(annotations: str, folder: str, limit: Optional[int]) -> List[Dict[str, Any]]:
    """Without what only licences and downloads need, and with the path."""
    try:
        with open(annotations, encoding="utf-8") as file:
            images = json.load(file)["images"]
        images = sorted(images, key=lambda image: image["id"])[:limit]
        place = os.path.abspath(folder)
        return [
            dict(
                {key: value for key, value in image.items() if key not in UNWANTED},
                image=os.path.join(place, image["file_name"]),
            )
            for image in images
        ]
    except (OSError, ValueError) as error:
        raise SystemExit(f"{annotations}: {error}") from None
    except (KeyError, TypeError, AttributeError):
        raise SystemExit(f"{annotations}: is not a COCO annotation file: images need id and file_name") from None


def write(path: str, lines: Iterable[str]) -> None:
    """Whole or not at all."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(f"{path}.aside", "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.replace(f"{path}.aside", path)


def main() -> None:
    parser = argparse.ArgumentParser(description="List the images of a COCO annotation file.")
    parser.add_argument("--dataset", required=True, help="name of the data set")
    parser.add_argument("--dataset_dir", required=True, help="folder of its images")
    parser.add_argument("--dataset_ann", required=True, help="its annotation file")
    parser.add_argument("--limit-files", type=int, help="at most this many images")
    parser.add_argument("--output-file", required=True, help="file to write a line of JSON for each image to")
    parser.add_argument("--output-image-file", help="file to write the paths to")
    args = parser.parse_args()
    found = images_of(args.dataset_ann, args.dataset_dir, args.limit_files)
    if not found:
        raise SystemExit(f"{args.dataset_ann}: {args.dataset} has no image")
    write(args.output_file, [json.dumps(image) for image in found])
    if args.output_image_file:
        write(args.output_image_file, [image["image"] for image in found])


if __name__ == "__main__":
    main()
