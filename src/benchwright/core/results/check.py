"""A validation layer's verdict on a benchmark, with its explanation."""

from __future__ import annotations

from enum import Enum

import msgspec


class CheckStatus(str, Enum):
    PASSED = "passed"
    FAILED = "failed"
    WARNED = "warned"
    NOT_APPLICABLE = "not_applicable"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """`explanation`: one sentence with the figures that led to it."""

    layer: str  # error, ensure_rate, loss, usage, planning, version, plausibility…
    status: CheckStatus
    explanation: str
