"""Fetching one file into a part file, which a later attempt, or another process, continues.

parts/<identity>.part   the bytes so far
parts/<identity>.json   what they are of: the file's name, its location and what the server calls its version
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from benchwright.artifacts.checksums import Hashing, Sums, feed
from benchwright.artifacts.limits import FetchLimits, FetchObserver, free_bytes
from benchwright.core.errors import CannotFetch, CannotWrite
from benchwright.core.quantities import format_bytes, format_duration
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import write_own

_READ = 1 << 18
_TELL_S = 0.5
_LOOK_AT_DISK = 64 << 20
_PROGRESS = 1 << 20  # an attempt that got this far was worth it
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class TemporaryTrouble(Exception):
    """Another attempt may succeed. `wait_s`: how long the server asked us to wait."""

    def __init__(self, what: str, wait_s: float = 0.0) -> None:
        super().__init__(what)
        self.wait_s = wait_s


class StartOver(TemporaryTrouble):
    """The part fetched so far does not fit what follows."""


class NotModified(Exception):
    """The server still has the version we have."""


class Opened(msgspec.Struct):
    """An answer. `start`: where its first byte belongs; `total`: the size of the whole file, if that is known."""

    read: Callable[[int], bytes]
    close: Callable[[], None]
    start: int
    total: int | None
    version: str | None  # an ETag or a date: bytes of another version do not fit


class Source(Protocol):
    """Where a file comes from."""

    shown: str  # for messages

    def open(self, start: int, version: str | None, have: str | None) -> Opened:
        """The bytes from `start` on, if the file is still of `version`; else from 0 on.

        `have`: the version we have complete. Raises NotModified, TemporaryTrouble or CannotFetch.
        """
        ...


class PartState(msgspec.Struct, frozen=True, kw_only=True):
    """Of the bytes in a part file. `location` is without secrets."""

    version: str | None
    name: str
    location: str


class Download:
    """One file. `has_sum`: whether the result will be verified, so that bytes of an unknown version may be continued."""

    def __init__(
        self, part: Path, source: Source, limits: FetchLimits, observer: FetchObserver, name: str, *, has_sum: bool
    ) -> None:
        self.part = part
        self.version: str | None = None
        self._state = part.with_suffix(".json")
        self._source, self._limits, self._observer, self._name = source, limits, observer, name
        self._has_sum = has_sum
        self._began = time.monotonic()
        self._reported_at = self._began

    def run(self, have: str | None = None) -> Sums:
        """Fetches the missing part and returns the sums of the whole. Raises CannotFetch, CannotWrite or NotModified."""
        attempts = 0
        while True:
            before = self._size()
            try:
                return self._attempt(have)
            except TemporaryTrouble as trouble:
                if isinstance(trouble, StartOver):
                    self.discard()
                attempts = 1 if self._size() - before >= _PROGRESS else attempts + 1
                if attempts >= self._limits.attempts:
                    kept = f"; {format_bytes(self._size())} are kept" if self._size() else ""
                    tries = f"{attempts} attempts" if attempts > 1 else "one attempt"
                    raise CannotFetch(
                        f"{self._name}: cannot fetch {self._source.shown}: {trouble} ({tries}{kept})",
                        remedy="try again later: what was fetched is continued" if kept else "try again later",
                    ) from None
                wait_s = max(self._limits.back_off_s * 2 ** (attempts - 1), trouble.wait_s)
                self._observer.on_step_now(self._name, f"{trouble}; trying again in {format_duration(wait_s)}")
                time.sleep(min(wait_s, self._limits.longest_wait_s))
            except OSError as error:
                raise self._unwritable(error) from error

    def discard(self) -> None:
        """Starts over next time."""
        for path in (self.part, self._state):
            path.unlink(missing_ok=True)

    def _attempt(self, have: str | None) -> Sums:
        start, version = self._size(), self._stored_version()
        if start and version is None and not self._has_sum:
            start = 0  # nobody would notice if they were of another version
        opened = self._source.open(start, version, have)
        try:
            if opened.start != start or (start and version and opened.version not in (None, version)):
                if opened.start:
                    raise StartOver("it changed during the download")
                start = 0
            self.version = opened.version
            self._check_size(opened.total, start)
            if not start:
                self.discard()
                state = PartState(version=opened.version, name=self._name, location=self._source.shown)
                write_own(self._state, msgspec.json.encode(state))
            hashing = Hashing()
            if start:
                self._observer.on_step_now(self._name, f"continuing after {format_bytes(start)}")
                feed(hashing, self.part)
            return self._receive(opened, hashing, start)
        finally:
            with suppress(OSError):
                opened.close()

    def _receive(self, opened: Opened, hashing: Hashing, start: int) -> Sums:
        done, window_from, window_began = start, start, time.monotonic()
        next_look = start + _LOOK_AT_DISK
        with open(self.part, "r+b" if start else "wb", buffering=0) as file:
            file.seek(start)
            while True:
                block = opened.read(_READ)
                if not block:
                    break
                done += len(block)
                self._check_size(done, done)
                _write_all(file.fileno(), block)
                hashing.update(block)
                now = time.monotonic()
                if now - window_began >= self._limits.stall_s:
                    if done - window_from < self._limits.least_bytes_s * (now - window_began):
                        rate = format_bytes((done - window_from) / (now - window_began))
                        raise TemporaryTrouble(f"it stalled: {rate}/s for {format_duration(now - window_began)}")
                    window_from, window_began = done, now
                if done >= next_look:
                    next_look = done + _LOOK_AT_DISK
                    self._check_size(None, done)
                self._tell(done, start, opened.total, now)
        if opened.total is not None and done < opened.total:
            raise TemporaryTrouble(f"it ended after {done:,} of {opened.total:,} bytes")
        return hashing.sums()

    def _tell(self, done: int, start: int, total: int | None, now: float) -> None:
        if now - self._reported_at < _TELL_S:
            return
        self._reported_at = now
        rate = (done - start) / max(now - self._began, 1e-3)
        far = format_bytes(done)
        if total:
            far += f" of {format_bytes(total)} ({100 * done / total:.0f} %)"
        left = ""
        if total and rate > 0 and now > self._began + 2:
            left_s = (total - done) / rate
            left = f", {format_duration(left_s) if left_s >= 60 else f'{left_s:.0f} s'} left"
        self._observer.on_step_now(self._name, f"downloading {far}, {format_bytes(rate)}/s{left}")

    def _check_size(self, total: int | None, done: int) -> None:
        """CannotFetch if it is larger than allowed, or than the disk has room for."""
        if total is not None and total > self._limits.max_bytes:
            self.discard()
            larger = "more than the limit of" if total == done else f"{format_bytes(total)}, the limit is"
            raise CannotFetch(
                f"{self._name}: {self._source.shown} has {larger} {format_bytes(self._limits.max_bytes)}",
                remedy="raise it with $BENCHWRIGHT_MAX_DOWNLOAD if this is right",
            )
        if total == done:
            return
        free = free_bytes(self.part.parent)
        needed = max(0, (total or 0) - done) + self._limits.keep_free_bytes
        if free < needed:
            size = "" if total is None else f"the {format_bytes(total)} of "
            raise CannotFetch(
                f"{self._name}: no room on the disk of {self.part.parent} for {size}{self._source.shown}: "
                f"{format_bytes(free)} free, {format_bytes(self._limits.keep_free_bytes)} are kept free",
                remedy="free some space (benchwright cache clean) or choose another folder",
            )

    def _unwritable(self, error: OSError) -> CannotWrite:
        if error.errno in _NO_ROOM:
            self.discard()  # the space is needed more than the part
            why = (
                "the disk is full"
                if error.errno != errno.EFBIG
                else "the file would be too large for the disk or the limit of this shell"
            )
            return CannotWrite(
                f"{self.part.parent}: {why}; free some space (benchwright cache clean) or choose another folder"
            )
        return CannotWrite(f"{error.filename or self.part}: {error.strerror or error}; choose another folder")

    def _size(self) -> int:
        try:
            return os.stat(self.part).st_size
        except OSError:
            return 0

    def _stored_version(self) -> str | None:
        state = part_state(self.part)
        return None if state is None else state.version


def part_state(part: Path) -> PartState | None:
    """None if there is none that can be read."""
    try:
        return read_stored_json(part.with_suffix(".json"), PartState)
    except (OSError, Unreadable):
        return None


def _write_all(handle: int, block: bytes) -> None:
    """A disk that is nearly full takes a part of it; only the next write fails."""
    written = os.write(handle, block)
    while written < len(block):
        written += os.write(handle, block[written:])
