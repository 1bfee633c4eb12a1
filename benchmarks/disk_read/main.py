#!/usr/bin/env python3
"""Reading files: from beginning to end or anywhere, past the page cache. Bytes a second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_shared"))

from blocks import PAGE, Block, Reader, file_system, page, scattered, sequence

from benchprobe import give, iterate
from workload.claims import Claim, conclude
from workload.options import data_folder, parse, parser
from workload.prepared import needed

NAME = "disk_read"
SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"files": 2, "file_mib": 8, "batch_size": 4, "readers": 1},
    "small": {"files": 4, "file_mib": 128, "batch_size": 32, "readers": 4},
    "full": {"files": 8, "file_mib": 1024, "batch_size": 256, "readers": 16},
}
IN_MEMORY = ("tmpfs", "ramfs")
BLOCK_KIB = {"sequential": 1024, "random": 128}


def arguments(argv: list[str] | None = None) -> Any:
    found = parser(str(__doc__), SIZES)
    found.add_argument("--pattern", choices=tuple(BLOCK_KIB), default="sequential")
    found.add_argument("--block-kib", type=int, help="read at a time  [sequential: 1024, random: 128]")
    found.add_argument("--readers", type=int, help="threads that read at the same time  [by size]")
    found.add_argument(
        "--cache", choices=("direct", "drop", "keep"), default="direct", help="what is done about the page cache"
    )
    options = parse(found, SIZES, argv)
    options.block_kib = options.block_kib or BLOCK_KIB[options.pattern]
    if options.block_kib * 1024 % PAGE or not 0 < options.block_kib <= 1024 * SIZES[options.size]["file_mib"]:
        found.error(f"--block-kib {options.block_kib}: must be a multiple of {PAGE // 1024}, and no larger than a file")
    return options


def blocks_of(options: Any, reader: Reader) -> Iterator[Block]:
    if options.pattern == "random":
        return scattered(reader.sizes, reader.length, options.seed)
    return sequence(reader.sizes, reader.length)


def steps(blocks: Iterator[Block], count: int, readers: int) -> Iterator[list[list[Block]]]:
    """`count` blocks a step, divided among the readers: neighbours stay together."""
    share = -(-count // readers)
    while step := list(islice(blocks, count)):
        yield [step[i : i + share] for i in range(0, count, share)]


def open_reader(options: Any) -> Reader:
    folder = needed(data_folder(options, NAME))
    return Reader(folder, options.block_kib * 1024, options.cache, options.pattern == "random")


def main(options: Any) -> int:
    if options.check:
        return check(options)
    reader = open_reader(options)
    kind = file_system(reader.paths[0])
    if reader.cache != options.cache:
        sys.stderr.write(f"{kind} cannot read {reader.paths[0]} directly; --cache {reader.cache} is used\n")
    if kind in IN_MEMORY:
        sys.stderr.write(f"{reader.paths[0]} is in memory ({kind}): this measures no disk\n")
    give(file_system=kind, cache=reader.cache)
    buffers = [reader.buffer() for _ in range(options.readers)]
    source = islice(steps(blocks_of(options, reader), options.batch_size, options.readers), options.steps)
    with ThreadPoolExecutor(options.readers) as threads:
        for parts in iterate("read", source, batch_size=options.batch_size * reader.length, unit="B"):
            for part in parts:
                reader.forget(part)
            for _ in threads.map(reader.read, parts, buffers):
                pass
    reader.close()
    return 0


def check(options: Any) -> int:
    """The bytes are those that were written, in the order and number that is told."""
    reader = open_reader(options)
    buffer = reader.buffer()
    read = right = 0
    places = set()
    for parts in islice(steps(blocks_of(options, reader), options.batch_size, options.readers), 8):
        for part in parts:
            reader.forget(part)
            for block in part:
                read += reader.read([block], buffer)
                first, count = block.offset // PAGE, reader.length // PAGE
                right += PAGE * sum(
                    buffer[i * PAGE : i * PAGE + 32] == page(block.file, first + i) for i in range(count)
                )
                places.add(block)
    told = 8 * options.batch_size * reader.length
    follow = [block.offset for block in islice(blocks_of(options, reader), 8)]
    orderly = all(b - a == reader.length or b == 0 for a, b in pairwise(follow))
    files = sum(size // reader.length for size in reader.sizes)
    claims = [
        Claim("bytes of 8 steps", told, read, 0.0),
        Claim("bytes that are what was written", told, right, 0.0),
        Claim("one block follows the other", float(options.pattern == "sequential"), float(orderly)),
        Claim("many blocks, not one again and again", 1, float(len(places) > min(8 * options.batch_size, files) / 3)),
    ]
    reader.close()
    return conclude(claims)


if __name__ == "__main__":
    sys.exit(main(arguments()))
