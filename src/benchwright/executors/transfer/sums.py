"""The checksums that a machine can make of what arrived, as its own tools print them."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator

from benchwright.executors.transfer.manifest import Entry

_BLOCK_BYTES = 1 << 20
_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def sum_of(tool: str, entry: Entry) -> str:
    """The first word `tool` prints for this file."""
    if tool == "sha256sum":
        return entry.digest
    if tool == "md5sum":
        digest = hashlib.md5(usedforsecurity=False)
        for block in _blocks(entry):
            digest.update(block)
        return digest.hexdigest()
    return _posix_checksum(_blocks(entry))


def _posix_checksum(blocks: Iterator[bytes]) -> str:
    """Of `cksum`: the CRC that zlib computes, with the bits of all bytes mirrored, and the length at the end."""
    register, length = 0xFFFFFFFF, 0
    for block in blocks:
        register = zlib.crc32(block.translate(_MIRRORED), register)
        length += len(block)
    ending = length.to_bytes((length.bit_length() + 7) // 8, "little")
    register = zlib.crc32(ending.translate(_MIRRORED), register)
    return str(int(f"{register:032b}"[::-1], 2))


def _blocks(entry: Entry) -> Iterator[bytes]:
    if entry.source is None:
        yield entry.content
        return
    with open(entry.source, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block
