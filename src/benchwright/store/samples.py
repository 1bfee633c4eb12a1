"""Raw samples as compact arrays: 8 bytes each, or fewer where compressing helps.

    f8              little-endian float64, one after the other
    f8-planes-zlib  the same, but first the first byte of every number, then the second of every number…, compressed:
                    numbers of one metric have nearly the same sign and exponent, so those bytes shrink to nothing

Every bit comes back, those of NaN too. The arrays of a run follow one another and are cut into pieces that fill a page
of the database, however long or short each array is.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence

import msgspec

# With what a row has besides just below 8 KiB, the page of PostgreSQL; two of them in a page of our SQLite files.
PIECE_BYTES = 8120
PLAIN = "f8"
COMPRESSED = "f8-planes-zlib"
_SAMPLE_BYTES = 8
_TRIAL_BYTES = 1 << 15
_WORTH_IT = 0.75  # compressing takes ten times as long as copying: it must save a good part
_LEAST_BYTES = 2048


class Packed(msgspec.Struct, frozen=True):
    encoding: str
    data: bytes


class DamagedSamples(ValueError):
    """What was stored cannot be the samples it should be."""


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
    """The `count` numbers; DamagedSamples if it does not hold that many."""
    raw = _decompress(packed.data, count) if packed.encoding == COMPRESSED else packed.data
    if packed.encoding not in (PLAIN, COMPRESSED):
        raise DamagedSamples(f"samples are encoded as '{packed.encoding}', which is not known here")
    if len(raw) != count * _SAMPLE_BYTES:
        raise DamagedSamples(f"{count} samples should take {count * _SAMPLE_BYTES} bytes, but there are {len(raw)}")
    numbers = array("d")
    numbers.frombytes(raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def checksum(data: bytes) -> int:
    """CRC-32 as a signed number: four bytes in every database. It changes with every byte that does."""
    found = zlib.crc32(data)
    return found - (1 << 32) if found >> 31 else found


def pieces_of(arrays: Iterable[bytes]) -> list[bytes]:
    """All arrays one after the other, cut into pieces."""
    whole = b"".join(arrays)
    return [whole[start : start + PIECE_BYTES] for start in range(0, len(whole), PIECE_BYTES)]


def _seems_worth_it(raw: bytes) -> bool:
    """Told from a piece of the middle, so that a long incompressible array is not compressed in vain."""
    middle = (len(raw) // 2) // _SAMPLE_BYTES * _SAMPLE_BYTES
    start = max(0, middle - _TRIAL_BYTES // 2)
    piece = raw[start : start + _TRIAL_BYTES]
    return len(_compress(piece)) < _WORTH_IT * len(piece)


def _compress(raw: bytes) -> bytes:
    return zlib.compress(b"".join(raw[plane::_SAMPLE_BYTES] for plane in range(_SAMPLE_BYTES)), level=1)


def _decompress(data: bytes, count: int) -> bytes:
    size = count * _SAMPLE_BYTES
    try:
        # Never more than what is expected: a damaged or malicious blob must not fill the memory.
        planes = zlib.decompressobj().decompress(data, size + 1)
    except zlib.error as error:
        raise DamagedSamples(f"samples cannot be decompressed: {error}") from error
    if len(planes) != size:
        raise DamagedSamples(f"{count} samples should take {size} bytes, but there are {len(planes)}")
    raw = bytearray(size)
    for plane in range(_SAMPLE_BYTES):
        raw[plane::_SAMPLE_BYTES] = planes[plane * count : (plane + 1) * count]
    return bytes(raw)
