"""Loaders of pictures, chosen by `--loader`."""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Iterator
from typing import Any

from . import unknown_names

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIDE = 224
BATCHES = 60


def dataloader_arguments(parser: argparse.ArgumentParser) -> None:
    loaders = "pytorch, pytorch_fakedataset, synthetic_fixed, synthetic_random, dali"
    parser.add_argument("--batch-size", type=int, default=16, help="items in a batch (default: 16)")
    parser.add_argument("--loader", default="pytorch", help=f"one of {loaders}")
    parser.add_argument("--num-workers", type=int, default=8, help="processes that load data (default: 8)")
    parser.add_argument("--data", default=os.environ.get("MILABENCH_DIR_DATA"), help="folder of the data")


def imagenet_dataloader(args: Any, model: Any, rank: int = 0, world_size: int = 1) -> Any:
    """Batches of pictures and labels."""
    if args.loader in ("synthetic_fixed", "synthetic_random"):
        return SyntheticBatches(model, args.batch_size, fixed=args.loader == "synthetic_fixed")
    if args.loader == "pytorch_fakedataset":
        return _torch_loader(Noise(args.batch_size * BATCHES), args, rank=0, world_size=1)
    if not args.data:
        raise ValueError("no data: give --data, or set MILABENCH_DIR_DATA")
    folder = os.path.join(args.data, "train")
    if args.loader == "dali":
        return DaliBatches(folder, args, rank, world_size)
    datasets: Any = importlib.import_module("torchvision.datasets")
    return _torch_loader(datasets.ImageFolder(folder, _transforms()), args, rank, world_size)


def _transforms() -> Any:
    transforms: Any = importlib.import_module("torchvision.transforms")
    flipped = [transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip()]
    return transforms.Compose([*flipped, transforms.ToTensor(), transforms.Normalize(mean=MEAN, std=STD)])


def _torch_loader(data: Any, args: Any, rank: int, world_size: int) -> Any:
    torch_data: Any = importlib.import_module("torch.utils.data")
    options: dict[str, Any] = {"shuffle": True}
    if world_size > 1:
        sampler = torch_data.distributed.DistributedSampler(data, rank=rank, num_replicas=world_size)
        options = {"sampler": sampler}
    return torch_data.DataLoader(
        data, batch_size=args.batch_size, num_workers=args.num_workers, pin_memory=True, **options
    )


class Noise:
    """Random pictures in memory."""

    def __init__(self, count: int) -> None:
        torch: Any = importlib.import_module("torch")
        self.pictures = [(torch.randn((3, SIDE, SIDE)), number % 1000) for number in range(count)]

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, number: int) -> Any:
        return self.pictures[number]


class SyntheticBatches:
    """Batches made on the device: always the same one, or new ones."""

    def __init__(self, model: Any, batch_size: int, *, fixed: bool, count: int = 1000) -> None:
        torch: Any = importlib.import_module("torch")
        accelerator: Any = importlib.import_module("torchcompat.core")
        device = accelerator.fetch_device(0)
        pictures = torch.randn((batch_size, 3, 244, 244), device=device)
        self.tensors = (pictures, torch.rand_like(model.to(device=device)(pictures)))
        self.fixed, self.count, self.renewed = fixed, count, torch.rand_like

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.count):
            yield self.tensors if self.fixed else [self.renewed(tensor) for tensor in self.tensors]


class DaliBatches:
    """Pictures decoded on the device by NVIDIA's DALI."""

    class sampler:
        @staticmethod
        def set_epoch(epoch: int) -> None:
            """DALI shuffles by itself."""

    def __init__(self, folder: str, args: Any, rank: int, world_size: int) -> None:
        dali: Any = importlib.import_module("nvidia.dali")
        fn: Any = importlib.import_module("nvidia.dali.fn")
        plugin: Any = importlib.import_module("nvidia.dali.plugin.pytorch")

        def pictures() -> Any:
            shard = {"shard_id": rank, "num_shards": world_size, "name": "Reader"}
            files, labels = fn.readers.file(file_root=folder, random_shuffle=True, **shard)
            images = fn.decoders.image_random_crop(files, device="mixed", output_type=dali.types.RGB)
            images = fn.resize(images, resize_x=256, resize_y=256)
            scaled = {"mean": [255 * m for m in MEAN], "std": [255 * s for s in STD]}
            crop = {"crop_h": SIDE, "crop_w": SIDE, "mirror": fn.random.coin_flip()}
            return fn.crop_mirror_normalize(images, **crop, **scaled), labels

        options = {"batch_size": args.batch_size, "num_threads": args.num_workers, "device_id": 0}
        pipeline = dali.pipeline_def(pictures)(**options)
        self.batches = plugin.DALIGenericIterator([pipeline], ["data", "label"], reader_name="Reader")

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        for (batch,) in self.batches:
            yield batch["data"], batch["label"].squeeze(1).long()


__getattr__ = unknown_names(__name__)
