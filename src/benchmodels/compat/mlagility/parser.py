"""`from mlagility.parser import parse`, as scripts of its corpora have it."""

from __future__ import annotations

from benchprobe.parameters import parse

__all__ = ["parse"]
