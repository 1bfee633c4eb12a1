"""Memory of a forked process, made like that of one that imported everything itself.

After a fork, what the parent wrote is shared until one of both writes to it, which costs a fault and a copy in the middle
of a measurement; and what was only read of files is not mapped at all, so that the process looks smaller than it is.
"""

from __future__ import annotations

import array
import ctypes
import mmap
import sys
from typing import Iterator, List, NamedTuple, Sequence, Tuple

_POPULATE_READ, _POPULATE_WRITE = 22, 23  # of madvise, since Linux 5.14
_PRESENT, _OF_FILE = 1 << 63, 1 << 61  # bits of an entry of /proc/self/pagemap

Span = Tuple[int, int]  # an address and a number of bytes


class Pages(NamedTuple):
    """Pages in memory: those this process wrote and may write again, and those it only read of files."""

    written: Tuple[Span, ...] = ()
    read: Tuple[Span, ...] = ()


def pages_now() -> Pages:
    """Of this process; none where the system does not tell."""
    written: List[Span] = []
    read: List[Span] = []
    if sys.platform != "linux":
        return Pages()
    try:
        with open("/proc/self/pagemap", "rb", buffering=0) as pagemap:
            for first, end, may_write in _private_maps():
                pagemap.seek(first // mmap.PAGESIZE * 8)
                entries = array.array("Q", pagemap.read((end - first) // mmap.PAGESIZE * 8))
                for place, count, of_file in _runs(entries):
                    span = (first + place * mmap.PAGESIZE, count * mmap.PAGESIZE)
                    if of_file:
                        read.append(span)
                    elif may_write:
                        written.append(span)
    except OSError:
        return Pages()
    return Pages(tuple(written), tuple(read))


def take_over(pages: Pages) -> None:
    """In a forked process: copies what its parent wrote, and maps what it read. What cannot be done is left to the kernel,
    which does it when it is needed."""
    if not pages.written and not pages.read:
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for spans, advice in ((pages.written, _POPULATE_WRITE), (pages.read, _POPULATE_READ)):
        for address, length in spans:
            madvise(address, length, advice)


def _private_maps() -> Iterator[Tuple[int, int, bool]]:
    """First address, end, and whether it may be written, of mappings with a page in memory."""
    with open("/proc/self/smaps") as file:
        head: List[str] = []
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                head = words
            elif words[0] == "Rss:" and words[1] != "0" and head[1].endswith("p"):
                first, end = (int(part, 16) for part in head[0].split("-"))
                yield first, end, head[1][1] == "w"


def _runs(entries: Sequence[int]) -> Iterator[Tuple[int, int, bool]]:
    """Neighbours that are in memory and alike: the first, how many, and whether they are of a file."""
    began, kind = 0, 0
    for place, entry in enumerate(entries):
        now = entry & (_PRESENT | _OF_FILE) if entry & _PRESENT else 0
        if now != kind:
            if kind:
                yield began, place - began, bool(kind & _OF_FILE)
            began, kind = place, now
    if kind:
        yield began, len(entries) - began, bool(kind & _OF_FILE)
