"""Raw samples as compact arrays: 8 bytes each, or fewer where compression helps.

    f8              little-endian float64, one after the other
    f8-planes-zlib  first the first byte of every number, then the second of every number…, compressed: numbers of one
                    metric have nearly the same sign and exponent, so those bytes shrink to nothing

Lossless, NaN payloads included. The arrays of a run are concatenated and cut into pieces that fill a database page.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence

import msgspec

# A row then just fits into PostgreSQL's page of 8 KiB, and two into a page of our SQLite files.
PIECE_BYTES = 8120
PLAIN = "f8"
COMPRESSED = "f8-planes-zlib"
_SAMPLE_BYTES = 8
_TRIAL_BYTES = 1 << 15
_WORTH_IT = 0.75  # compressing takes ten times as long as copying, so it must save this much
_LEAST_BYTES = 2048


class Packed(msgspec.Struct, frozen=True):
    encoding: str
    data: bytes


class DamagedSamples(ValueError):
    """The stored samples are damaged."""


def pack(values: Sequence[float]) -> Packed:
    numbers = array("d", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    raw = numbers.tobytes()
    if len(raw) < _LEAST_BYTES or not _seems_worth_it(raw):
        return Packed(PLAIN, raw)
    compressed = _compress(raw)
    return Packed(COMPRESSED, compressed) if len(compressed) < _WORTH_IT * len(raw) else Packed(PLAIN, raw)


def unpack(packed: Packed, count: int) -> tuple[float, ...]:
    """The `count` numbers; DamagedSamples if there are not exactly that many."""
    return tuple(unpack_column(packed, count))


def unpack_column(packed: Packed, count: int) -> array[float]:
    """The same in a quarter of the memory."""
    raw = _decompress(packed.data, count) if packed.encoding == COMPRESSED else packed.data
    if packed.encoding not in (PLAIN, COMPRESSED):
        raise DamagedSamples(f"samples have the unknown encoding '{packed.encoding}'")
    if len(raw) != count * _SAMPLE_BYTES:
        raise DamagedSamples(f"{count} samples have {len(raw)} bytes instead of {count * _SAMPLE_BYTES}")
    numbers = array("d")
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def checksum(data: bytes) -> int:
    """CRC-32 as a signed number, which takes four bytes in every database."""
    found = zlib.crc32(data)
    return found - (1 << 32) if found >> 31 else found


def pieces_of(arrays: Iterable[bytes]) -> list[bytes]:
    """All arrays concatenated and cut into pieces."""
    whole = b"".join(arrays)
    return [whole[start : start + PIECE_BYTES] for start in range(0, len(whole), PIECE_BYTES)]


def _seems_worth_it(raw: bytes) -> bool:
    """Judged by a piece from the middle, so that a long incompressible array is not compressed in vain."""
    middle = (len(raw) // 2) // _SAMPLE_BYTES * _SAMPLE_BYTES
    start = max(0, middle - _TRIAL_BYTES // 2)
    piece = raw[start : start + _TRIAL_BYTES]
    return len(_compress(piece)) < _WORTH_IT * len(piece)


def _compress(raw: bytes) -> bytes:
    return zlib.compress(b"".join(raw[plane::_SAMPLE_BYTES] for plane in range(_SAMPLE_BYTES)), level=1)


def _decompress(data: bytes, count: int) -> bytes:
    size = count * _SAMPLE_BYTES
    try:
        # Never more than expected: a damaged or malicious blob must not fill the memory.
        planes = zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise DamagedSamples(f"samples cannot be decompressed: {error}") from error
    if len(planes) != size:
        raise DamagedSamples(f"{count} samples have {len(planes)} bytes instead of {size}")
    raw = bytearray(size)
    for plane in range(_SAMPLE_BYTES):
        raw[plane::_SAMPLE_BYTES] = planes[plane * count : (plane + 1) * count]
    return bytes(raw)
