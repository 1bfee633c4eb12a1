"""Limits on the size and time of downloads, and the protocol for their progress."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

import msgspec

from benchwright.core.quantities import parse_size

MAX_DOWNLOAD = "BENCHWRIGHT_MAX_DOWNLOAD"
_GIB = 1 << 30


class FetchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """`least_bytes_s`: slower than this over `stall_s`, a download counts as stalled."""

    max_bytes: int = 64 * _GIB  # of one file, and of all files in an archive
    keep_free_bytes: int = _GIB // 4  # of the disk
    max_redirects: int = 5
    attempts: int = 4  # without progress, of what may be temporary
    back_off_s: float = 0.5  # doubled each time
    longest_wait_s: float = 30.0  # that a server may ask for
    connect_s: float = 20.0
    stall_s: float = 30.0
    least_bytes_s: float = 1024.0
    max_unpacked_files: int = 200_000
    max_ratio: float = 200.0  # unpacked ÷ packed, once more than `free_ratio_bytes` are unpacked
    free_ratio_bytes: int = 64 << 20

    @staticmethod
    def choose(environment: Mapping[str, str]) -> FetchLimits:
        """The defaults, with $BENCHWRIGHT_MAX_DOWNLOAD if it is set."""
        given = environment.get(MAX_DOWNLOAD)
        return FetchLimits(max_bytes=parse_size(given, where=f"${MAX_DOWNLOAD}")) if given else FetchLimits()


class FetchObserver(Protocol):
    """Told how far a fetch is; the observer of a run is one."""

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        """`name` began something."""

    def on_step_now(self, name: str, what: str) -> None:
        """How far it is; worth showing only where it can be redrawn, or if it takes a while."""

    def on_step_done(self, name: str, how: str = "") -> None:
        """It is done."""

    def on_note(self, text: str) -> None:
        """Something a user should know."""


class NoObserver(FetchObserver):
    """Tells nobody."""

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        return None

    def on_step_now(self, name: str, what: str) -> None:
        return None

    def on_step_done(self, name: str, how: str = "") -> None:
        return None

    def on_note(self, text: str) -> None:
        return None


def free_bytes(folder: str | os.PathLike[str]) -> int:
    """Bytes that this user may still write to that disk."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
