#!/usr/bin/env python3
"""The average precision of detections on COCO: boxes and masks that process_single_image_output.py wrote, against annotations.

As COCO defines it: over ten overlaps from 0.5 to 0.95, 101 recalls, all categories, at most 100 detections an image and
category; crowds neither count nor harm. Only images that were looked at count. A polygon covers the pixels whose centre lies
in it, so that masks may differ from pycocotools' by single pixels at their edge.

Reads `<input-dir>/<prefix>_<n>.pkl` for n from 0 to limit − 1; a missing one is an error: precision on some of the images would
pass for that on all. Writes COCO's two result files, prints the figures, and a record of each for an observer.

Standard library only: it runs with any Python.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

OVERLAPS = [0.5 + 0.05 * step for step in range(10)]
RECALLS = [step * 0.01 for step in range(101)]  # rounded as COCO rounds them: a recall may lie on one
AREAS = {"all": (0.0, 1e10), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, 1e10)}
MOST = 100  # detections of an image and category
Spans = List[Tuple[int, int]]  # of a mask: from, to, down each column


class Thing(NamedTuple):
    """An annotated or detected object. `shape` is a box (x, y, width, height), or the spans of a mask."""

    shape: Any
    area: float
    score: float = 0.0
    crowd: bool = False


class Judged(NamedTuple):
    """The detections of one image and category, at one overlap and size: score, whether it is right, whether it counts."""

    scores: List[float]
    right: List[bool]
    counts: List[bool]
    wanted: int  # annotated objects that count


# Masks.


def spans_of_counts(counts: Sequence[int]) -> Spans:
    spans, at = [], 0
    for number, count in enumerate(counts):
        if number % 2 and count:
            spans.append((at, at + count))
        at += count
    return spans


def uncompressed(text: str) -> List[int]:
    """COCO's text: groups of five bits, least first, the sixth says that more follow; from the third on, differences."""
    counts: List[int] = []
    at = 0
    while at < len(text):
        value, shift, more = 0, 0, True
        while more:
            bits = ord(text[at]) - 48
            value |= (bits & 31) << shift
            shift, more, at = shift + 5, bool(bits & 32), at + 1
        if bits & 16:
            value -= 1 << shift
        counts.append(value + counts[-2] if len(counts) > 2 else value)
    return counts


def compressed(counts: Sequence[int]) -> str:
    made = []
    for number, count in enumerate(counts):
        value, more = count - counts[number - 2] if number > 2 else count, True
        while more:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            made.append(chr((bits | 32 if more else bits) + 48))
    return "".join(made)


def polygon_spans(points: Sequence[float], height: int, width: int) -> Spans:
    """The pixels whose centre lies inside."""
    corners = list(zip(points[::2], points[1::2]))
    edges = [(a, b) for a, b in zip(corners, corners[1:] + corners[:1]) if a[0] != b[0]]
    columns = range(max(int(min(points[::2])), 0), min(math.ceil(max(points[::2])), width))
    spans: Spans = []
    for column in columns:
        x = column + 0.5
        crossed = sorted(
            a[1] + (x - a[0]) * (b[1] - a[1]) / (b[0] - a[0]) for a, b in edges if (a[0] <= x) != (b[0] <= x)
        )
        for top, bottom in zip(crossed[::2], crossed[1::2]):
            first, last = (min(max(math.ceil(y - 0.5), 0), height) for y in (top, bottom))
            if last > first:
                spans.append((column * height + first, column * height + last))
    return united(spans)


def united(spans: Iterable[Tuple[int, int]]) -> Spans:
    found: Spans = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def mask_spans(segmentation: Any, height: int, width: int) -> Spans:
    """Of a list of polygons, or of run lengths."""
    if isinstance(segmentation, dict):
        counts = segmentation["counts"]
        return spans_of_counts(uncompressed(counts) if isinstance(counts, str) else counts)
    return united(span for polygon in segmentation for span in polygon_spans(polygon, height, width))


# Overlaps.


def box_overlap(got: Thing, wanted: Thing) -> float:
    (x, y, w, h), (u, v, p, q) = got.shape, wanted.shape
    shared = max(min(x + w, u + p) - max(x, u), 0.0) * max(min(y + h, v + q) - max(y, v), 0.0)
    return _ratio(shared, w * h, p * q, wanted.crowd)


def mask_overlap(got: Thing, wanted: Thing) -> float:
    shared, i, j = 0, 0, 0
    mine, theirs = got.shape, wanted.shape
    while i < len(mine) and j < len(theirs):
        shared += max(min(mine[i][1], theirs[j][1]) - max(mine[i][0], theirs[j][0]), 0)
        if mine[i][1] < theirs[j][1]:
            i += 1
        else:
            j += 1
    return _ratio(shared, pixels(mine), pixels(theirs), wanted.crowd)


def pixels(spans: Spans) -> int:
    return sum(end - begin for begin, end in spans)


def _ratio(shared: float, got: float, wanted: float, crowd: bool) -> float:
    whole = got if crowd else got + wanted - shared
    return shared / whole if whole > 0 else 0.0


# Precision.


def judge(
    found: Sequence[Thing], wanted: Sequence[Thing], overlaps: Sequence[Sequence[float]], least: float, area: str
) -> Judged:
    """Each detection, best first, takes the object it overlaps most, if no better one took it."""
    low, high = AREAS[area]
    left_out = [thing.crowd or not low <= thing.area <= high for thing in wanted]
    order = sorted(range(len(wanted)), key=lambda at: left_out[at])
    taken = [False] * len(wanted)
    right, counts = [], []
    for number, thing in enumerate(found):
        best, match = min(least, 1 - 1e-10), -1
        for at in order if max(overlaps[number], default=0.0) >= best else ():
            if taken[at] and not wanted[at].crowd:
                continue
            if match > -1 and not left_out[match] and left_out[at]:
                break
            if overlaps[number][at] >= best:
                best, match = overlaps[number][at], at
        if match > -1:
            taken[match] = True
        right.append(match > -1)
        counts.append(not left_out[match] if match > -1 else low <= thing.area <= high)
    return Judged([thing.score for thing in found], right, counts, left_out.count(False))


def precision_and_recall(judged: Sequence[Judged], most: int) -> Optional[Tuple[float, float]]:
    """Mean precision over the recalls, and the recall reached; None for a category without objects."""
    wanted = sum(each.wanted for each in judged)
    if not wanted:
        return None
    rows = [row for each in judged for row in list(zip(each.scores, each.right, each.counts))[:most]]
    rows = [row for row in sorted(rows, key=lambda row: -row[0]) if row[2]]
    recalls, precisions, right = [], [], 0
    for number, row in enumerate(rows, start=1):
        right += row[1]
        recalls.append(right / wanted)
        precisions.append(right / number)
    for at in range(len(precisions) - 2, -1, -1):
        precisions[at] = max(precisions[at], precisions[at + 1])
    total, at = 0.0, 0
    for recall in RECALLS:
        while at < len(recalls) and recalls[at] < recall:
            at += 1
        total += precisions[at] if at < len(precisions) else 0.0
    return total / len(RECALLS), recalls[-1] if recalls else 0.0


Scenes = Dict[Tuple[int, int], Tuple[List[Thing], List[Thing]]]  # image and category → detected, annotated


def evaluate(scenes: Scenes, overlap: Callable[[Thing, Thing], float]) -> Dict[str, float]:
    """COCO's twelve figures, from 0 to 1; NaN where there is no such object."""
    tables = {}
    for key, (found, wanted) in scenes.items():
        best = sorted(found, key=lambda thing: -thing.score)[:MOST]
        tables[key] = best, wanted, [[overlap(one, other) for other in wanted] for one in best]
    cases = [("AP", "all", None, MOST), ("AP50", "all", 0.5, MOST), ("AP75", "all", 0.75, MOST)]
    cases += [(f"AP_{area}", area, None, MOST) for area in ("small", "medium", "large")]
    cases += [(f"AR{most}", "all", None, most) for most in (1, 10, 100)]
    cases += [(f"AR_{area}", area, None, MOST) for area in ("small", "medium", "large")]
    categories = sorted({category for _, category in scenes})
    judged: Dict[Tuple[str, int, int], List[Judged]] = {}
    for (_, category), (best, wanted, overlaps) in sorted(tables.items()):
        for area, (low, high) in AREAS.items():
            if not any(low <= thing.area <= high for thing in (*best, *wanted)):
                continue  # nothing of it counts
            for step, least in enumerate(OVERLAPS):
                made = judge(best, wanted, overlaps, least, area)
                judged.setdefault((area, step, category), []).append(made)
    figures = {}
    for name, area, only, most in cases:
        steps = [step for step, least in enumerate(OVERLAPS) if only is None or abs(least - only) < 1e-9]
        pairs = [
            precision_and_recall(judged.get((area, step, kind), []), most) for step in steps for kind in categories
        ]
        values = [pair[name.startswith("AR")] for pair in pairs if pair is not None]
        figures[name] = sum(values) / len(values) if values else math.nan
    return figures


# Files.


def read_json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path}: {error}") from None


def read_results(folder: str, prefix: str, limit: int, images: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    found = []
    for number in range(limit):
        path = os.path.join(folder, f"{prefix}_{number}.pkl")
        result = read_json(path)
        if not isinstance(result, dict) or not {"classids", "boxes", "im_masks"} <= set(result):
            raise SystemExit(f"{path}: is not a file of process_single_image_output.py")
        if result.get("image_id") not in (None, images[number]["id"]):
            raise SystemExit(f"{path}: is of image {result['image_id']}, not {images[number]['id']}")
        found.append(result)
    return found


def detections(results: Sequence[Dict[str, Any]], images: Sequence[Dict[str, Any]], kinds: List[int]) -> List[Any]:
    """In COCO's form of results, boxes and masks together."""
    made = []
    for image, result in zip(images, results):
        for kind, box, mask in zip(result["classids"], result["boxes"], result["im_masks"]):
            if not 1 <= kind <= len(kinds):
                raise SystemExit(f"image {image['id']}: class {kind}, and there are {len(kinds)}")
            x, y, right, bottom, score = box
            where = [x, y, right - x + 1, bottom - y + 1]
            made.append(
                {"image_id": image["id"], "category_id": kinds[kind - 1], "bbox": where, "score": score, "mask": mask}
            )
    return made


def scenes_of(found: Sequence[Any], annotations: Sequence[Any], images: Sequence[Any], *, masks: bool) -> Scenes:
    sizes = {image["id"]: (image["height"], image["width"]) for image in images}
    scenes: Scenes = {}
    for each in annotations:
        if each["image_id"] in sizes:
            shape = mask_spans(each["segmentation"], *sizes[each["image_id"]]) if masks else each["bbox"]
            thing = Thing(shape, each["area"], crowd=bool(each.get("iscrowd")))
            scenes.setdefault((each["image_id"], each["category_id"]), ([], []))[1].append(thing)
    for each in found:
        box = each["bbox"]
        shape = spans_of_counts(each["mask"]["counts"]) if masks else box
        area = float(pixels(shape)) if masks else box[2] * box[3]
        thing = Thing(shape, area, each["score"])
        scenes.setdefault((each["image_id"], each["category_id"]), ([], []))[0].append(thing)
    return scenes


def write(path: str, content: Any) -> None:
    with open(f"{path}.aside", "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(f"{path}.aside", path)


def write_results(folder: str, dataset: str, found: Sequence[Any]) -> None:
    os.makedirs(folder, exist_ok=True)
    boxes = [{key: each[key] for key in ("image_id", "category_id", "bbox", "score")} for each in found]
    masks = [
        {
            **{key: each[key] for key in ("image_id", "category_id", "score")},
            "segmentation": {"size": each["mask"]["size"], "counts": compressed(each["mask"]["counts"])},
        }
        for each in found
    ]
    write(os.path.join(folder, f"bbox_{dataset}_results.json"), boxes)
    write(os.path.join(folder, f"segmentations_{dataset}_results.json"), masks)


def show(kind: str, figures: Dict[str, float], keyword: str) -> None:
    print(f"{kind}: " + ", ".join(f"{name} {100 * value:.1f}" for name, value in figures.items()))
    for name, value in figures.items():
        if not math.isnan(value):
            metric = f"{kind}_{name.replace('AP', 'average_precision_').replace('AR', 'average_recall_').strip('_')}"
            metric = metric.replace("__", "_")
            record = {"type": "NET", "metric": metric, "unit": "percent", "value": 100 * value}
            print(f"{keyword.strip()} {json.dumps(record)}".strip())


def main() -> None:
    parser = argparse.ArgumentParser(description="Average precision of detections on COCO.")
    parser.add_argument("--dataset", required=True, help="name of the data set, for the result files")
    parser.add_argument("--dataset_dir", required=True, help="accepted: images are not read again")
    parser.add_argument("--dataset_ann", required=True, help="its annotation file")
    parser.add_argument("--limit-files", type=int, required=True, help="how many images were looked at")
    parser.add_argument("--input-dir", required=True, help="folder of the files of process_single_image_output.py")
    parser.add_argument("--result-prefix", required=True, help="their names begin with this, then _0.pkl, _1.pkl…")
    parser.add_argument("--output-dir", required=True, help="folder to write COCO's result files to")
    parser.add_argument("--metric-keyword", default="Caffe2Observer", help="identifier to print before each record")
    args = parser.parse_args()
    content = read_json(args.dataset_ann)
    try:
        images = sorted(content["images"], key=lambda image: image["id"])[: args.limit_files]
        kinds = [category["id"] for category in content["categories"]]
        annotations = content["annotations"]
    except (KeyError, TypeError):
        raise SystemExit(f"{args.dataset_ann}: lacks images, categories or annotations") from None
    if not images:
        raise SystemExit(f"{args.dataset_ann}: no image to look at")
    results = read_results(args.input_dir, args.result_prefix, len(images), images)
    found = detections(results, images, kinds)
    write_results(args.output_dir, args.dataset, found)
    show("bbox", evaluate(scenes_of(found, annotations, images, masks=False), box_overlap), args.metric_keyword)
    show("segm", evaluate(scenes_of(found, annotations, images, masks=True), mask_overlap), args.metric_keyword)


if __name__ == "__main__":
    main()
