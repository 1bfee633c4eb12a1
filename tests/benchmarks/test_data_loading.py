"""The input pipeline: files made once, batches that any number of workers makes alike."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest
from shipped_benchmarks import checked_lines, load, prepare

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
data_loading = load("data_loading")

from workload.image_files import Endless, Files, ImageFiles, augmented, make, middle, random_box  # noqa: E402
from workload.prepared import made_once  # noqa: E402


def test_it_computes_what_it_claims(tmp_path):
    folder = prepare("data_loading", data=tmp_path)
    assert folder == tmp_path / "data_loading" / "tiny"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    prepare("data_loading", data=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert checked_lines("data_loading", data=tmp_path, is_process=True)


@pytest.mark.long
def test_what_evaluates_computes_what_it_claims(tmp_path):
    prepare("data_loading", data=tmp_path)
    assert checked_lines(
        "data_loading", "--transform", "evaluate", "--batch-size", "10", data=tmp_path, is_process=True
    )


def size_of(path):
    with Image.open(path) as image:
        return image.size


def test_files_are_images_of_the_size_wanted(tmp_path):
    files = Files(count=6, width=48, height=36, classes=3)
    images = ImageFiles(make(tmp_path / "images", files), side=16)
    assert Counter(images.label(i) for i in range(len(images))) == {0: 2, 1: 2, 2: 2}
    assert {size_of(path) for path in images.files} == {(48, 36), (36, 48)}
    pixels, label = images[(0, 3)]
    assert (pixels.shape, pixels.dtype, label) == ((3, 16, 16), torch.float32, images.label(3))
    assert torch.equal(images[(0, 3)][0], pixels)  # the same draw
    assert not torch.equal(images[(1, 3)][0], pixels)


def test_photographs_weigh_what_photographs_do(tmp_path):
    folder = make(tmp_path / "images", Files(count=4, width=500, height=375, classes=1000))
    sizes = [path.stat().st_size for path in folder.glob("*/*.jpg")]
    assert 80_000 < sum(sizes) / len(sizes) < 140_000


def test_every_process_draws_its_own_part_of_all_files():
    drawn = [list(islice(Endless(12, 0, rank, 3), 8)) for rank in range(3)]
    first = [number for part in drawn for _, number in part[:4]]
    assert sorted(first) == list(range(12))
    assert len({draw for part in drawn for draw, _ in part}) == 24


@pytest.mark.parametrize("size", [(500, 375), (375, 500), (10, 1000), (1, 1)])
def test_parts_of_images_lie_inside(size):
    chance = random.Random(0)
    for _ in range(200):
        left, top, right, bottom = random_box(*size, chance)
        assert 0 <= left < right <= size[0]
        assert 0 <= top < bottom <= size[1]


def test_images_are_flipped_half_of_the_time():
    image = Image.new("RGB", (64, 48))
    image.paste((255, 255, 255), (32, 0, 64, 48))
    chance = random.Random(0)
    brighter = 0
    for _ in range(200):
        pixels = torch.tensor(list(augmented(image, 8, chance).convert("L").tobytes())).view(8, 8).float()
        left, right = pixels[:, 0].mean(), pixels[:, -1].mean()
        brighter += 0 if left == right else (1 if right > left else -1)
    assert abs(brighter) < 40


def test_evaluation_takes_the_middle():
    image = Image.new("RGB", (70, 140), "black")
    image.paste((255, 0, 0), (20, 50, 50, 90))
    taken = middle(image, 56)
    assert taken.size == (56, 56)
    assert taken.getpixel((28, 28)) == (255, 0, 0)
    assert taken.getpixel((2, 2)) == (0, 0, 0)


def test_a_folder_is_complete_or_not_there(tmp_path):
    def fail(aside):
        (aside / "half").write_text("")
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        made_once(tmp_path / "data", {"files": 1}, fail)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_made_in_another_way_is_made_anew(tmp_path):
    for text in ("a", "b"):
        made_once(tmp_path / "data", {"text": text}, lambda aside, text=text: (aside / "file").write_text(text))
    assert (tmp_path / "data" / "file").read_text() == "b"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_step_is_one_batch_of_every_worker():
    batches = [(None, [0] * 4)] * 5
    assert list(data_loading.rounds(batches, 2)) == [8, 8, 4]
