"""The scripts that accuracy specifications call, with the arguments of the seed's; numbers checked by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from specifications import records
from specifications import run_script as run


def text_of(scores: np.ndarray[Any, Any]) -> str:
    return f"{','.join(map(str, scores.shape))},\n{','.join(repr(float(v)) for v in scores.reshape(-1))},\n"


@pytest.fixture
def scores() -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).random((20, 10))


@pytest.mark.parametrize("top", [1, 5])
def test_the_share_is_the_one_numpy_finds(tmp_path: Path, scores: np.ndarray[Any, Any], top: int) -> None:
    labels = np.random.default_rng(8).integers(0, 10, 20)
    labels[:6] = scores[:6].argmax(axis=1)
    (tmp_path / "out.txt").write_text(text_of(scores))
    (tmp_path / "labels.txt").write_text("".join(f"{k},cat,/images/{n}.jpg\n" for n, k in enumerate(labels)))
    said = run(
        "classification_compare.py", "--name", "net", "--benchmark-output", tmp_path / "out.txt", "--labels",
        tmp_path / "labels.txt", "--top", top, "--metric-keyword", "Caffe2Observer ", "--result-file", tmp_path / "accuracy_0.txt",
    )  # fmt: skip
    wanted = (np.argsort(-scores, axis=1)[:, :top] == labels[:, None]).any(axis=1)
    found = records(said)
    percent = found[f"percent_of_top{top}_corrects"]
    assert percent["values"] == [int(v) for v in wanted]
    assert percent["summary"]["p50"] == pytest.approx(100 * wanted.mean())
    assert found[f"number_of_top{top}_corrects"]["summary"]["mean"] == wanted.sum()
    kept = json.loads((tmp_path / "accuracy_0.txt").read_text())
    assert set(kept) == {f"net_{word}_of_top{top}_corrects" for word in ("number", "percent")}


def test_batches_written_one_below_the_other_are_images_too(tmp_path: Path, scores: np.ndarray[Any, Any]) -> None:
    (tmp_path / "out.txt").write_text("".join(text_of(row[None]) for row in scores))
    (tmp_path / "labels.txt").write_text("".join(f"{row.argmax()},x,y\n" for row in scores))
    said = run(
        "classification_compare.py",
        "--name",
        "n",
        "--benchmark-output",
        tmp_path / "out.txt",
        "--labels",
        tmp_path / "labels.txt",
    )
    assert [json.loads(line)["summary"]["p50"] for line in said.stdout.splitlines()] == [20, 100.0]


@pytest.mark.parametrize(
    ("output", "labels", "why"),
    [
        ("2,2\n1,2,3\n", "0,a,b\n", "sizes 2,2 with 3 numbers"),
        ("1,3\n1,nan,3\n", "0,a,b\n", "a score is nan"),
        ("1,3\n1,x,3\n", "0,a,b\n", "'x' is not a number"),
        ("1,3\n1,2,3\n", "0,a,b\n1,a,b\n", "3 scores for 2 images"),
        ("1,3\n1,2,3\n", "9,a,b\n", "class 9 is beyond the 3 scores"),
        ("1,3\n1,2,3\n", "cat,a,b\n", "'cat' is not the index of a class"),
        ("1,3\n1,2,3\n", "\n", "holds no label"),
        ("\n", "0,a,b\n", "holds no number"),
    ],
)
def test_what_does_not_fit_is_an_error_and_no_share(tmp_path: Path, output: str, labels: str, why: str) -> None:
    (tmp_path / "out.txt").write_text(output)
    (tmp_path / "labels.txt").write_text(labels)
    said = run(
        "classification_compare.py",
        "--name",
        "n",
        "--benchmark-output",
        tmp_path / "out.txt",
        "--labels",
        tmp_path / "labels.txt",
    )
    assert said.returncode == 1
    assert why in said.stderr
    assert not said.stdout


def test_the_aggregate_is_over_all_images_of_all_batches(tmp_path: Path) -> None:
    for number, values in enumerate(([1, 0, 1], [1], [0, 0])):
        record = {
            "type": "net",
            "metric": "percent_of_top1_corrects",
            "unit": "percent",
            "values": values,
            "summary": {},
        }
        (tmp_path / f"accuracy_{number}.txt").write_text(json.dumps({"net_percent": record}))
    said = run(
        "aggregate_classification_results.py",
        "--dir",
        tmp_path,
        "--prefix",
        "accuracy",
        "--limit",
        3,
        "--metric-keyword",
        "Caffe2Observer ",
    )
    total = records(said)["total_percent_of_top1_corrects"]
    assert total["summary"]["p50"] == pytest.approx(50.0)  # 3 of 6; the mean of the batches' shares would be 55.6
    missing = run("aggregate_classification_results.py", "--dir", tmp_path, "--prefix", "accuracy", "--limit", 4)
    assert missing.returncode == 1
    assert "3 of 4 batches are there" in missing.stderr


def test_images_are_listed_with_their_class(tmp_path: Path) -> None:
    for folder in ("n01", "n02"):
        (tmp_path / "val" / folder).mkdir(parents=True)
        for name in ("b.jpg", "a.jpg", "c.jpg"):
            (tmp_path / "val" / folder / name).touch()
    (tmp_path / "labels.txt").write_text("n02,dog\nn01,cat\n")
    outputs = ("--output-label-file", tmp_path / "o" / "l.txt", "--output-image-file", tmp_path / "o" / "i.txt")
    said = run(
        "imagenet_test_map.py",
        "--image-dir",
        tmp_path / "val",
        "--label-file",
        tmp_path / "labels.txt",
        "--limit-per-category",
        2,
        *outputs,
    )
    assert said.returncode == 0, said.stderr
    lines = (tmp_path / "o" / "l.txt").read_text().splitlines()
    assert lines == [
        f"{k},{label},{tmp_path}/val/{folder}/{name}.jpg"
        for k, label, folder in ((0, "dog", "n02"), (1, "cat", "n01"))
        for name in "ab"
    ]
    assert (tmp_path / "o" / "i.txt").read_text().splitlines() == [line.split(",")[2] for line in lines]
    mixed = []
    for _ in range(2):
        assert (
            run(
                "imagenet_test_map.py", "--image-dir", tmp_path / "val", "--shuffle", "--limit-files", 4, *outputs
            ).returncode
            == 0
        )
        mixed.append((tmp_path / "o" / "l.txt").read_text())
    assert mixed[0] == mixed[1]
    assert {line.split(",")[1] for line in mixed[0].splitlines()} <= {"n01", "n02"}
