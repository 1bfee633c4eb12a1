"""The scripts that detection specifications call. Figures were checked by hand, others against pycocotools 2.0."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from specifications import SCRIPTS, records
from specifications import run_script as run

WIDTH, HEIGHT = 40, 30
IMAGES = [{"id": i, "height": HEIGHT, "width": WIDTH, "file_name": f"{i}.jpg", "license": 3} for i in (9, 2)]
CATEGORIES = [{"id": 5, "name": "cat"}, {"id": 8, "name": "dog"}]


def box_mask(x: int, y: int, w: int, h: int) -> dict[str, Any]:
    """Run lengths of a full box."""
    counts = [x * HEIGHT + y]
    for _ in range(w):
        counts += [h, HEIGHT - h]
    counts[-1] += HEIGHT * WIDTH - sum(counts)
    return {"size": [HEIGHT, WIDTH], "counts": counts}


def wanted(image: int, box: list[int], category: int = 5, crowd: int = 0) -> dict[str, Any]:
    x, y, w, h = box
    polygon = [[x, y, x + w, y, x + w, y + h, x, y + h]]
    segmentation = box_mask(*box) if crowd else polygon
    return {
        "image_id": image, "category_id": category, "bbox": box, "area": w * h, "iscrowd": crowd, "segmentation": segmentation,
    }  # fmt: skip


def found(image: int, *boxes: tuple[int, list[int], float]) -> dict[str, Any]:
    return {
        "image_id": image,
        "classids": [kind for kind, _, _ in boxes],
        "boxes": [[x, y, x + w - 1, y + h - 1, score] for _, (x, y, w, h), score in boxes],
        "im_masks": [box_mask(*box) for _, box, _ in boxes],
    }


def evaluated(
    folder: Path, annotations: list[Any], results: list[dict[str, Any]], limit: int = 2
) -> subprocess.CompletedProcess[str]:
    content = {"images": IMAGES, "categories": CATEGORIES, "annotations": annotations}
    (folder / "ann.json").write_text(json.dumps(content))
    for number, result in enumerate(results):
        (folder / f"r_{number}.pkl").write_text(json.dumps(result))
    return run(
        "coco/test_engine.py", "--dataset", "set", "--dataset_dir", folder, "--dataset_ann", folder / "ann.json",
        "--limit-files", limit, "--input-dir", folder, "--result-prefix", "r", "--output-dir", folder / "out",
    )  # fmt: skip


def test_average_precision_is_that_of_the_definition(tmp_path: Path) -> None:
    annotations = [wanted(2, [2, 3, 10, 10]), wanted(9, [20, 5, 10, 12]), wanted(9, [1, 1, 8, 8], crowd=1)]
    results = [
        found(2, (1, [2, 3, 10, 10], 0.9), (1, [25, 15, 9, 9], 0.8)),
        found(9, (1, [20, 5, 10, 12], 0.7), (1, [1, 1, 5, 5], 0.95)),  # the last lies in a crowd
    ]
    said = records(evaluated(tmp_path, annotations, results))
    # Right, wrong, right of two: precision 1 up to a recall of one half, two thirds beyond; the one in a crowd is left out.
    expected = 100 * (51 + 50 * 2 / 3) / 101
    for kind in ("bbox", "segm"):
        assert said[f"{kind}_average_precision"]["value"] == pytest.approx(expected)
        assert said[f"{kind}_average_precision_50"]["value"] == pytest.approx(expected)
        assert said[f"{kind}_average_recall_100"]["value"] == pytest.approx(100)
        assert f"{kind}_average_precision_large" not in said  # there is no such object
    boxes = json.loads((tmp_path / "out" / "bbox_set_results.json").read_text())
    assert boxes[0] == {"image_id": 2, "category_id": 5, "bbox": [2, 3, 10, 10], "score": 0.9}
    masks = json.loads((tmp_path / "out" / "segmentations_set_results.json").read_text())
    assert masks[0]["segmentation"]["counts"].startswith("o1:d0")


def test_a_box_that_overlaps_by_half_counts_for_the_lowest_threshold_only(tmp_path: Path) -> None:
    said = records(evaluated(tmp_path, [wanted(2, [0, 0, 10, 10])], [found(2, (1, [0, 0, 10, 19], 0.5)), found(9)]))
    assert said["bbox_average_precision_50"]["value"] == pytest.approx(100)
    assert said["bbox_average_precision"]["value"] == pytest.approx(10)  # 10 / 19 = 0.53: one of ten overlaps


def test_a_recall_that_lies_on_a_threshold_counts_as_it_does_in_coco(tmp_path: Path) -> None:
    boxes = [[4 * (number % 10), 10 * (number // 10), 3, 8] for number in range(20)]
    right = [(1, box, 0.9) for box in boxes[:7]]
    said = evaluated(tmp_path, [wanted(2, box) for box in boxes], [found(2, *right), found(9)])
    # 7 of 20 are 0.35; COCO's threshold is 0.35000000000000003, which that does not reach.
    assert records(said)["bbox_average_precision_50"]["value"] == pytest.approx(100 * 35 / 101)


def test_a_missing_image_is_an_error_not_a_smaller_set(tmp_path: Path) -> None:
    said = evaluated(tmp_path, [wanted(2, [0, 0, 9, 9])], [found(2)])
    assert said.returncode == 1
    assert "r_1.pkl" in said.stderr


def test_results_of_another_image_are_refused(tmp_path: Path) -> None:
    said = evaluated(tmp_path, [wanted(2, [0, 0, 9, 9])], [found(9), found(2)])
    assert said.returncode == 1
    assert "is of image 9, not 2" in said.stderr


def test_images_are_listed_by_id_and_scaled_within_bounds(tmp_path: Path) -> None:
    (tmp_path / "ann.json").write_text(json.dumps({"images": [*IMAGES, {**IMAGES[0], "id": 11, "width": 90}]}))
    listed = run(
        "coco/json_dataset.py", "--dataset", "set", "--dataset_dir", tmp_path, "--dataset_ann", tmp_path / "ann.json",
        "--limit-files", 3, "--output-file", tmp_path / "db.txt", "--output-image-file", tmp_path / "images.txt",
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr
    lines = [json.loads(line) for line in (tmp_path / "db.txt").read_text().splitlines()]
    assert [line["id"] for line in lines] == [2, 9, 11]
    assert lines[0] == {"id": 2, "height": HEIGHT, "width": WIDTH, "image": str(tmp_path / "2.jpg")}
    assert (tmp_path / "images.txt").read_text().split()[1] == str(tmp_path / "9.jpg")
    scaled = run(
        "coco/generate_im_info.py", "--dataset-file", tmp_path / "db.txt", "--min-size", 60, "--max-size", 120,
        "--output-file", tmp_path / "info.txt",
    )  # fmt: skip
    assert scaled.returncode == 0, scaled.stderr
    head, *rows = (tmp_path / "info.txt").read_text().splitlines()
    assert head == "3, 3"
    assert rows[0] == "60, 80, 2.0"
    assert rows[2].startswith("40, 120, 1.333")


def processed(folder: Path, boxes: list[list[float]], masks: list[float], side: int) -> Any:
    count = len(boxes)
    blobs = {
        "class_nms": (f"{count}", [1] * count),
        "score_nms": (f"{count}", [0.5] * count),
        "bbox_nms": (f"{count},4", [value for box in boxes for value in box]),
        "mask_fcn_probs": (f"{count},2,{side},{side}", masks),
    }
    for name, (sizes, values) in blobs.items():
        (folder / f"{name}.txt").write_text(f"{sizes}\n{','.join(map(str, values))}\n")
    (folder / "image.txt").write_text(json.dumps({"id": 2, "height": HEIGHT, "width": WIDTH}))
    said = run(
        "coco/process_single_image_output.py", "--blob-names", ",".join(blobs), "--blob-files",
        ",".join(str(folder / f"{name}.txt") for name in blobs), "--im-info", folder / "image.txt", "--output-file",
        folder / "r_0.pkl", "--rle-encode",
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    return json.loads((folder / "r_0.pkl").read_text())


def test_a_full_mask_covers_its_box_and_what_leaves_the_image_is_cut(tmp_path: Path) -> None:
    side = 14
    full = [0.0] * side * side + [1.0] * side * side
    result = processed(tmp_path, [[5, 6, 18, 19], [30, 20, 60, 60]], full * 2, side)
    inside, outside = (mask["counts"] for mask in result["im_masks"])
    assert sum(inside) == sum(outside) == WIDTH * HEIGHT
    # The box with its margin is cut to whole pixels, 4 to 18 and 5 to 19; of these the outermost are the margin.
    assert inside[0] == 5 * HEIGHT + 6
    assert inside[1::2] == [13] * 13
    assert sum(outside[1::2]) <= 11 * 11
    assert result["boxes"][0] == [5, 6, 18, 19, 0.5]


def test_an_image_without_detections_is_no_error(tmp_path: Path) -> None:
    assert processed(tmp_path, [], [], 14)["im_masks"] == []


def test_imagenets_own_labels_need_no_file(tmp_path: Path) -> None:
    for folder in ("n02", "n01"):
        (tmp_path / "val" / folder).mkdir(parents=True)
        (tmp_path / "val" / folder / "a.jpg").touch()
    said = run(
        "imagenet_test_map.py", "--image-dir", tmp_path / "val", "--label-file", SCRIPTS / "labels.txt",
        "--output-label-file", tmp_path / "out.txt",
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert [line.split(",")[:2] for line in (tmp_path / "out.txt").read_text().split()] == [["0", "n01"], ["1", "n02"]]
