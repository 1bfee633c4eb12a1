"""Durations, sizes and percentages as users write them."""

from __future__ import annotations

import math
import re

from benchwright.core.errors import InvalidInput

_NUMBER = r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_DURATION_S = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE_BYTES = {"": 1, "B": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("KMGT", start=1)
    for suffix, base in (("iB", 1024), ("B", 1000), ("", 1024))
}


def parse_duration(text: str, *, where: str | None = None) -> float:
    """Seconds from `90s`, `10m`, `2h`, `500ms` or a bare number of seconds."""
    match = re.fullmatch(_NUMBER + r"\s*([a-z]*)", text.strip())
    if match is None or match[2] not in _DURATION_S:
        raise InvalidInput(
            f"'{text}' is not a duration", where=where, remedy="write 90s, 10m, 2h or a number of seconds"
        )
    return float(match[1]) * _DURATION_S[match[2]]


def parse_size(text: str, *, where: str | None = None) -> int:
    """Bytes from `512MiB`, `80GB` or a bare number of bytes."""
    match = re.fullmatch(_NUMBER + r"\s*([A-Za-z]*)", text.strip())
    if match is None or match[2] not in _SIZE_BYTES:
        raise InvalidInput(f"'{text}' is not a size", where=where, remedy="write 512MiB, 80GB or a number of bytes")
    if len(match[1]) > 30:
        raise InvalidInput(
            f"'{text[:20]}…' is too large", where=where, remedy="write 512MiB, 80GB or a number of bytes"
        )
    return int(float(match[1]) * _SIZE_BYTES[match[2]])


def parse_percentage(text: str, *, where: str | None = None) -> float:
    """A fraction from `1%`: 0.01."""
    match = re.fullmatch(_NUMBER + r"\s*%", text.strip())
    if match is None or not 0 < float(match[1]) < 100:
        raise InvalidInput(f"'{text}' is not a percentage", where=where, remedy="write 1% or 0.5%")
    return float(match[1]) / 100


def format_duration(seconds: float) -> str:
    """`42 ms`, `2.42 s`, `12.4 s`, `3 min 05 s`, `2 h 04 min`; `nan s` for NaN."""
    if not math.isfinite(seconds):
        return f"{seconds} s"
    if seconds < 0.995:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def format_prefixed(value: float, unit: str, *, digits: int = 3) -> str:
    """`1.23 TFLOP/s`, `41.7 GB/s`: with a decimal prefix, as usual for arithmetic and bandwidth."""
    if not math.isfinite(value):
        return f"{value} {unit}"
    prefix, scaled = "", value
    for larger in "kMGTPE":
        if abs(scaled) < 1000 - 0.5 / 10 ** (digits - 3):  # more is rounded up to 1000
            break
        prefix, scaled = larger, scaled / 1000
    return f"{scaled:.{digits}g} {prefix}{unit}"


def format_bytes(count: float) -> str:
    """`788 B`, `1.9 GiB`: binary units, as usual for memory."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1000:
            return f"{count:.3g} {unit}"
    return f"{count / 1024:.3g} TiB"
