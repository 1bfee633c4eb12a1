"""Unpacking archives that may be hostile: plain files and folders only, each below the target, within limits."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple

from benchwright.artifacts.limits import FetchLimits, free_bytes
from benchwright.core.errors import CannotFetch, InvalidInput
from benchwright.core.quantities import format_bytes

_BLOCK = 1 << 18
_LOOK_AT_DISK = 64 << 20
_BY_HAND = "unpack it yourself and name the folder"
_EXECUTABLE = 0o100


class _Member(NamedTuple):
    name: str
    content: IO[bytes] | None  # None: a folder
    executable: bool


class Unpacked(NamedTuple):
    files: int
    size: int


def unpack(archive: Path, into: Path, limits: FetchLimits) -> Unpacked:
    """Unpacks a zip or tar archive into the new folder `into`; leaves nothing behind if that fails.

    CannotFetch for a damaged one and for one beyond the limits, InvalidInput for one that would write elsewhere.
    """
    into.mkdir(parents=True)
    try:
        return _Unpacking(archive, into, limits).run()
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        shutil.rmtree(into, ignore_errors=True)
        what = f"{archive}: this archive is damaged or of an unknown kind ({error})"
        raise CannotFetch(what, remedy=_BY_HAND) from error
    except BaseException:
        shutil.rmtree(into, ignore_errors=True)
        raise


class _Unpacking:
    def __init__(self, archive: Path, into: Path, limits: FetchLimits) -> None:
        self._archive, self._into, self._limits = archive, into, limits
        self._packed = os.stat(archive).st_size
        self._files = self._members_seen = self._size = 0
        self._next_look = 0

    def run(self) -> Unpacked:
        for member in self._members():
            path = self._place(member.name)
            self._members_seen += 1
            if self._members_seen > self._limits.max_unpacked_files:
                raise self._too_much(f"it holds more than {self._limits.max_unpacked_files:,} files")
            if member.content is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                with member.content as content:
                    self._write(path, content, executable=member.executable)
        return Unpacked(self._files, self._size)

    def _members(self) -> Iterator[_Member]:
        if zipfile.is_zipfile(self._archive):
            return self._of_zip()
        return self._of_tar()

    def _of_zip(self) -> Iterator[_Member]:
        with zipfile.ZipFile(self._archive) as packed:
            for info in packed.infolist():
                mode = info.external_attr >> 16
                kind = mode & 0o170000
                if kind not in (0, 0o100000, 0o040000):
                    raise self._unsafe(info.filename, "is a link or a device")
                if info.flag_bits & 0x1:
                    raise self._unsafe(info.filename, "is encrypted")
                content = None if info.is_dir() else packed.open(info)
                yield _Member(info.filename, content, bool(mode & _EXECUTABLE))

    def _of_tar(self) -> Iterator[_Member]:
        with tarfile.open(self._archive, "r:*") as packed:
            for info in packed:
                if not (info.isreg() or info.isdir()):
                    raise self._unsafe(info.name, "is a link or a device")
                yield _Member(
                    info.name, packed.extractfile(info) if info.isreg() else None, bool(info.mode & _EXECUTABLE)
                )

    def _place(self, name: str) -> Path:
        parts = PurePosixPath(name.replace("\\", "/")).parts
        if not parts or name.startswith(("/", "\\")) or ".." in parts or "\0" in name:
            if name.rstrip("/") in (".", ""):
                return self._into
            raise self._unsafe(name, "leads out of it")
        return self._into.joinpath(*parts)

    def _write(self, path: Path, content: IO[bytes], *, executable: bool) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise self._unsafe(str(path.relative_to(self._into)), "is both a file and a folder")
        path.unlink(missing_ok=True)  # of two with the same name, the later one counts
        self._files += 1
        with open(path, "xb") as file:
            while block := content.read(_BLOCK):
                self._size += len(block)
                self._check()
                file.write(block)
        if executable:
            os.chmod(path, os.stat(path).st_mode | _EXECUTABLE)

    def _check(self) -> None:
        limits, ratio = self._limits, self._size / max(self._packed, 1)
        if self._size > limits.max_bytes:
            raise self._too_much(f"it unpacks to more than {format_bytes(limits.max_bytes)}")
        if self._size > limits.free_ratio_bytes and ratio > limits.max_ratio:
            raise self._too_much(f"it unpacks to more than {limits.max_ratio:.0f} times its size")
        if self._size >= self._next_look:
            self._next_look = self._size + _LOOK_AT_DISK
            if free_bytes(self._into) < limits.keep_free_bytes + _LOOK_AT_DISK:
                raise CannotFetch(
                    f"{self._archive}: no room on the disk of {self._into} to unpack it",
                    remedy="free some space (benchwright cache clean) or choose another folder",
                )

    def _too_much(self, why: str) -> CannotFetch:
        return CannotFetch(f"{self._archive} was not unpacked: {why}", remedy=f"if you trust it, {_BY_HAND}")

    def _unsafe(self, name: str, why: str) -> InvalidInput:
        return InvalidInput(
            f"this archive is not unpacked: {name[:100]!r} in it {why}", where=str(self._archive), remedy=_BY_HAND
        )
