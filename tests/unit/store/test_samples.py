"""Raw samples as compact arrays."""

from __future__ import annotations

import math
import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.store.samples import COMPRESSED, PLAIN, DamagedSamples, Packed, pack, unpack

FLOATS = st.lists(st.floats(width=64), max_size=300)


def bits(values: object) -> bytes:
    return b"".join(struct.pack("<d", v) for v in values)  # type: ignore[attr-defined]


@given(FLOATS)
def test_every_bit_comes_back(values: list[float]) -> None:
    assert bits(unpack(pack(values), len(values))) == bits(values)


@given(st.sampled_from([0.0, -0.0, math.nan, 1.5, math.inf]), st.integers(300, 3000))
def test_every_bit_comes_back_from_what_was_compressed(value: float, count: int) -> None:
    packed = pack([value] * count)
    assert packed.encoding == COMPRESSED
    assert bits(unpack(packed, count)) == bits([value] * count)


def test_a_nan_keeps_its_payload() -> None:
    (odd,) = struct.unpack("<d", bytes.fromhex("010203040506f87f"))
    assert bits(unpack(pack([odd]), 1)).hex() == "010203040506f87f"


def test_plain_numbers_are_little_endian_float64_one_after_the_other() -> None:
    assert pack((1.0, -2.5)) == Packed(PLAIN, struct.pack("<dd", 1.0, -2.5))


def test_compressed_numbers_are_the_bytes_of_equal_rank_together() -> None:
    values = [float(n % 7) for n in range(1000)]
    packed = pack(values)
    raw = bits(values)
    assert packed.encoding == COMPRESSED
    assert zlib.decompress(packed.data) == b"".join(raw[i::8] for i in range(8))


def test_numbers_that_cannot_be_compressed_take_eight_bytes_each() -> None:
    numbers = random.Random(1)
    values = [struct.unpack("<d", numbers.randbytes(8))[0] for _ in range(10_000)]
    packed = pack(values)
    assert packed.encoding == PLAIN
    assert len(packed.data) == 80_000


@pytest.mark.parametrize("digits", [0, 1, 2])
def test_numbers_read_from_a_log_take_less_than_six_bytes(digits: int) -> None:
    numbers = random.Random(1)
    values = [round(numbers.gauss(120, 3), digits) for _ in range(10_000)]
    assert len(pack(values).data) < 60_000


def test_an_array_whose_middle_only_looks_compressible_is_kept_plain() -> None:
    numbers = random.Random(1)
    noise = [struct.unpack("<d", numbers.randbytes(8))[0] for _ in range(100_000)]
    values = [*noise[:50_000], *([1.0] * 5_000), *noise[50_000:]]
    assert pack(values).encoding == PLAIN
    assert bits(unpack(pack(values), len(values))) == bits(values)


@pytest.mark.parametrize(
    ("packed", "count"),
    [
        (Packed(PLAIN, b"\0" * 15), 2),
        (Packed(PLAIN, b"\0" * 24), 2),
        (Packed(COMPRESSED, b"nonsense"), 2),
        (Packed(COMPRESSED, zlib.compress(b"\0" * 24)), 2),
        (Packed(COMPRESSED, zlib.compress(b"\0" * 16)[:-8]), 2),
        (Packed("f4", b"\0" * 16), 2),
    ],
    ids=["short", "long", "no zlib", "too many", "cut off", "unknown"],
)
def test_what_cannot_be_the_samples_is_refused(packed: Packed, count: int) -> None:
    with pytest.raises(DamagedSamples):
        unpack(packed, count)


def test_a_bomb_is_not_blown_up() -> None:
    bomb = zlib.compress(b"\0" * (1 << 25))
    with pytest.raises(DamagedSamples, match="17 bytes instead of 16"):
        unpack(Packed(COMPRESSED, bomb), 2)
