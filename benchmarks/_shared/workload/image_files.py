"""JPEG files of photographs' size and weight, and the input pipeline that reads them as training does.

Decoding with Pillow, a random crop scaled to the size wanted, a flip, and normalisation: the pipeline of
https://github.com/pytorch/examples/tree/main/imagenet, without torchvision.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Sampler

from workload.image_patterns import KINDS, class_patterns
from workload.prepared import made_once

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
QUALITY = 90
GRAIN = 24.0  # of the noise: photographs of 500 × 375 come to 100 kB, about the mean of ImageNet


@dataclass(frozen=True)
class Files:
    """How many images, and how large. Every other one is upright."""

    count: int
    width: int
    height: int
    classes: int = KINDS
    seed: int = 0


def make(folder: Path, files: Files) -> Path:
    """The files as class/number.jpg; those that are there already are not made again."""
    return made_once(folder, asdict(files), lambda aside: _write(aside, files))


def _write(folder: Path, files: Files) -> None:
    patterns = (class_patterns(files.classes, files.seed) + 1) * 127.5
    numbers = np.random.default_rng(files.seed)
    for number in range(files.count):
        label = number % files.classes
        size = (files.width, files.height) if number % 2 else (files.height, files.width)
        planes = [Image.fromarray(plane).resize(size, Image.Resampling.BICUBIC) for plane in patterns[label]]
        pixels = np.stack([np.asarray(plane) for plane in planes], axis=-1)
        pixels += GRAIN * numbers.standard_normal(pixels.shape[:2], dtype=np.float32)[..., None]
        place = folder / f"{label:04d}" / f"{number:06d}.jpg"
        place.parent.mkdir(exist_ok=True)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(place, quality=QUALITY)


class ImageFiles(Dataset[tuple[torch.Tensor, int]]):
    """Asked for (draw, number): the image with that number. What is random about it depends on the seed and the draw alone,
    so the batches are the same with any number of workers."""

    def __init__(self, folder: Path, side: int, training: bool = True, seed: int = 0) -> None:
        self.files = sorted(folder.glob("*/*.jpg"))
        self.side, self.training, self.seed = side, training, seed
        self._scale = 1 / (255 * torch.tensor(DEVIATION).view(3, 1, 1))
        self._shift = torch.tensor(MEAN).view(3, 1, 1) / torch.tensor(DEVIATION).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.files)

    def label(self, number: int) -> int:
        return int(self.files[number].parent.name)

    def __getitem__(self, wanted: tuple[int, int]) -> tuple[torch.Tensor, int]:
        draw, number = wanted
        with Image.open(self.files[number]) as file:
            image = file.convert("RGB")
        if self.training:
            image = augmented(image, self.side, random.Random(self.seed * 1_000_003 + draw))
        else:
            image = middle(image, self.side)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
        return pixels.to(torch.float32).mul_(self._scale).sub_(self._shift), self.label(number)


def augmented(image: Image.Image, side: int, chance: random.Random) -> Image.Image:
    """A part of the image of 8 to 100 % of its area, scaled, and flipped half of the time."""
    image = image.resize((side, side), Image.Resampling.BILINEAR, box=random_box(*image.size, chance))
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if chance.random() < 0.5 else image


def random_box(width: int, height: int, chance: random.Random) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a part whose sides are as 3:4 to 4:3."""
    for _ in range(10):
        area = width * height * chance.uniform(0.08, 1.0)
        ratio = math.exp(chance.uniform(math.log(3 / 4), math.log(4 / 3)))
        across, down = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < across <= width and 0 < down <= height:
            left, top = chance.randint(0, width - across), chance.randint(0, height - down)
            return left, top, left + across, top + down
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def middle(image: Image.Image, side: int) -> Image.Image:
    """As for evaluation: the shorter side scaled to 8/7 of `side`, and the middle of that."""
    factor = side * 8 / 7 / min(image.size)
    width, height = (max(side, round(length * factor)) for length in image.size)
    image = image.resize((width, height), Image.Resampling.BILINEAR)
    left, top = (width - side) // 2, (height - side) // 2
    return image.crop((left, top, left + side, top + side))


class Endless(Sampler[tuple[int, int]]):
    """(draw, number) for ever: all numbers in a new order, again and again. No pause between two rounds, as there would be
    if workers had to begin anew. Of several processes each has its own part."""

    def __init__(self, count: int, seed: int, rank: int = 0, world: int = 1) -> None:
        self.count, self.seed, self.rank, self.world = count, seed, rank, world

    def __iter__(self) -> Iterator[tuple[int, int]]:
        numbers = torch.Generator().manual_seed(self.seed)
        draw = 0
        while True:
            order = torch.randperm(self.count, generator=numbers).tolist()
            for place in range(self.rank, self.count, self.world):
                yield draw + place, order[place]
            draw += self.count


def endless_loader(
    images: ImageFiles, batch: int, workers: int, pin: bool = False, rank: int = 0, world: int = 1
) -> DataLoader[Any]:
    """Batches for ever, made by `workers` processes; by this one, if there are none."""
    return DataLoader(
        images,
        batch_size=batch,
        sampler=Endless(len(images), images.seed, rank, world),
        num_workers=workers,
        pin_memory=pin,
        drop_last=True,
    )
