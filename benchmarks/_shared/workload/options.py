"""The options every benchmark has."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SIZES = ("tiny", "small", "full")
PRECISIONS = ("fp32", "tf32", "bf16", "fp16")


def parser(
    description: str, sizes: Mapping[str, Mapping[str, Any]], precisions: Sequence[str] = PRECISIONS
) -> argparse.ArgumentParser:
    """A parser with the common options. `sizes` gives, for tiny, small and full, the values of options a user leaves out."""
    found = argparse.ArgumentParser(description=description)
    found.add_argument(
        "--size", choices=[s for s in SIZES if s in sizes], default="tiny", help="how large all of it is"
    )
    found.add_argument("--batch-size", type=int, help="items of one step, for each process  [by size]")
    found.add_argument("--device", default="auto", help="auto, cpu, cuda, xpu…  [auto]")
    found.add_argument("--precision", choices=precisions, help="what the arithmetic is done in  [by size]")
    found.add_argument("--compile", action="store_true", help="use torch.compile")
    found.add_argument("--steps", type=int, default=1_000_000, help="steps, if nothing stops the loop before")
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--threads", type=int, help="of the CPU; left to torch without it")
    found.add_argument("--data", help="the folder of prepared data  [$BENCHWRIGHT_DATA_DIR]")
    found.add_argument("--check", action="store_true", help="measure nothing: check that it computes what it claims")
    return found


def parse(found: argparse.ArgumentParser, sizes: Mapping[str, Mapping[str, Any]], argv: list[str] | None = None) -> Any:
    """The options, with those that were left out taken from the size."""
    options = found.parse_args(argv)
    for name, value in sizes[options.size].items():
        if getattr(options, name, None) is None:
            setattr(options, name, value)
    if options.precision is None:
        options.precision = "fp32"
    return options


def data_folder(options: Any, name: str) -> Path:
    """Where the prepared data of the benchmark `name` are, at the size that was chosen."""
    root = options.data or os.environ.get("BENCHWRIGHT_DATA_DIR") or os.environ.get("MILABENCH_DATA_DIR") or "data"
    return Path(root) / name / options.size
