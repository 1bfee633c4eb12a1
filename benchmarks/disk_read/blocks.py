"""Files whose every page says which one it is, and the ways to read them past the memory of the operating system."""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = 4096
MIB = 1 << 20
_DIRECT = getattr(os, "O_DIRECT", 0)


def page(file: int, number: int) -> bytes:
    """The first 32 bytes of that page of that file; the rest is noise, so that nothing can be compressed away."""
    return hashlib.sha256(f"{file}/{number}".encode()).digest()


def write(folder: Path, files: int, file_mib: int) -> None:
    """The files, on the disk and not only on their way to it."""
    noise = random.Random(0)
    for file in range(files):
        with open(folder / f"{file}.bin", "wb") as out:
            for start in range(0, file_mib * MIB // PAGE, MIB // PAGE):
                block = bytearray(noise.randbytes(MIB))
                for i in range(MIB // PAGE):
                    block[i * PAGE : i * PAGE + 32] = page(file, start + i)
                out.write(block)
            out.flush()
            os.fsync(out.fileno())


class Block(NamedTuple):
    file: int
    offset: int


def sequence(sizes: Sequence[int], length: int) -> Iterator[Block]:
    """All of each file from its beginning to its end, for ever."""
    while True:
        for file, size in enumerate(sizes):
            for offset in range(0, size - length + 1, length):
                yield Block(file, offset)


def scattered(sizes: Sequence[int], length: int, seed: int) -> Iterator[Block]:
    """Anywhere, for ever."""
    chance = random.Random(seed)
    while True:
        file = chance.randrange(len(sizes))
        yield Block(file, chance.randrange(sizes[file] // length) * length)


class Reader:
    """Reads blocks of the files of a folder. `cache`: direct (past the page cache), drop (what is read was forgotten
    before), keep (from memory, if it is there). What the file system cannot do directly is done by drop."""

    def __init__(self, folder: Path, length: int, cache: str, at_random: bool) -> None:
        self.paths = sorted(folder.glob("*.bin"), key=lambda path: int(path.stem))
        self.sizes = [path.stat().st_size for path in self.paths]
        self.length = length
        self.cache = "drop" if cache == "direct" and not direct_works(self.paths[0]) else cache
        flags = os.O_RDONLY | (_DIRECT if self.cache == "direct" else 0)
        self._files = [os.open(path, flags) for path in self.paths]
        if self.cache != "direct":
            for file in self._files:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM if at_random else os.POSIX_FADV_SEQUENTIAL)

    def buffer(self) -> mmap.mmap:
        """Room for a block, at the beginning of a page: direct reads need that."""
        return mmap.mmap(-1, self.length)

    def forget(self, blocks: Sequence[Block]) -> None:
        """Drops them from the page cache, where that is the way."""
        if self.cache == "drop":
            for block in blocks:
                os.posix_fadvise(self._files[block.file], block.offset, self.length, os.POSIX_FADV_DONTNEED)

    def read(self, blocks: Sequence[Block], buffer: mmap.mmap) -> int:
        """One after the other, each over the one before; the number of bytes."""
        total = 0
        for block in blocks:
            count = os.preadv(self._files[block.file], [buffer], block.offset)
            if count != self.length:
                raise OSError(
                    errno.EIO, f"{count} bytes instead of {self.length} at {block.offset}", self.paths[block.file]
                )
            total += count
        return total

    def close(self) -> None:
        for file in self._files:
            os.close(file)


def direct_works(path: Path) -> bool:
    """Whether the file system can read that file past the page cache."""
    if not _DIRECT:
        return False
    try:
        file = os.open(path, os.O_RDONLY | _DIRECT)
    except OSError:
        return False
    try:
        return os.preadv(file, [mmap.mmap(-1, PAGE)], 0) == PAGE
    except OSError:
        return False
    finally:
        os.close(file)


def file_system(path: Path) -> str:
    """The kind that holds that file: ext4, xfs, nfs4, tmpfs…"""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    kinds = [line.split(" - ")[1].split()[0] for line in lines if line.split()[2] == wanted]
    return kinds[-1] if kinds else "unknown"
