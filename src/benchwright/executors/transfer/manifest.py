"""The contents of a file or folder. Sums are remembered by path, size, time and inode: an unchanged tree is not
read again."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Collection, Mapping
from typing import Literal

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.core.whole_file import write_whole

_SETTLED_NS = 2_000_000_000  # a file changed less than this ago may change again without a visible change of its time
SKIPPED = ("__pycache__", ".git")  # byte code is made again, history is not needed
_MOST_DEPTH = 100


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """`path` is relative to the tree, "" for the tree itself. `source`: the file here; None: `content` is sent."""

    path: str
    kind: Literal["file", "folder", "link"]
    mode: int = 0o644
    size: int = 0
    mtime_s: int = 0
    digest: str = ""
    target: str = ""
    source: str | None = None
    content: bytes = b""

    @property
    def object_name(self) -> str:
        """Of its content on the far side: equal content with equal mode and time is sent and stored once."""
        return f"{self.digest}-{self.mode:o}-{self.mtime_s}"


class Manifest(msgspec.Struct, frozen=True):
    """A tree. `notes`: what was left out or replaced."""

    root: str
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()

    @property
    def files(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind == "file"]

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.files)

    @property
    def identity(self) -> str:
        """Equal for trees that look the same on the far side."""
        shown = [(e.path, e.kind, e.mode, e.size, e.mtime_s, e.digest, e.target) for e in self.entries]
        return hashlib.sha256(msgspec.json.encode([[_text(part) for part in row] for row in shown])).hexdigest()


class _Known(msgspec.Struct, array_like=True):
    size: int
    mtime_ns: int
    inode: int
    digest: str


class DigestCache:
    """SHA-256 sums of files, kept in a file per tree below `folder`; None: they are not kept."""

    def __init__(self, folder: str | None, root: str) -> None:
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self._path = None if folder is None else os.path.join(folder, f"{name}.json")
        self._known: dict[str, _Known] = {}
        self._used: dict[str, _Known] = {}
        self._changed = False
        if self._path is not None:
            try:
                with open(self._path, "rb") as file:
                    self._known = msgspec.json.decode(file.read(), type=dict[str, _Known])
            except (OSError, msgspec.DecodeError):
                pass  # read everything again

    def digest(self, path: str, name: str, status: os.stat_result) -> str:
        """The sum of the file `path`, known as `name` in its tree."""
        key, known = _text(name), self._known.get(_text(name))
        if known is None or (known.size, known.mtime_ns, known.inode) != (
            status.st_size,
            status.st_mtime_ns,
            status.st_ino,
        ):
            known = _Known(status.st_size, status.st_mtime_ns, status.st_ino, file_digest(path))
            self._changed = True
            if time.time_ns() - status.st_mtime_ns < _SETTLED_NS:
                return known.digest
        self._used[key] = known
        return known.digest

    def save(self) -> None:
        if self._path is None or not (self._changed or len(self._used) != len(self._known)):
            return
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            write_whole(self._path, msgspec.json.encode(self._used), sync=False)
        except OSError:
            pass  # it costs time, not correctness


def file_digest(path: str) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(
    root: str,
    cache_folder: str | None = None,
    *,
    keeps_link: Callable[[str, str], bool] = lambda name, target: False,
    replaced: Mapping[str, bytes] | None = None,
    skipped: Collection[str] = SKIPPED,
    excluded: Collection[str] = (),
) -> Manifest:
    """The tree at `root`, a file or a folder; CannotMeasure if something in it cannot be read.

    Links that stay inside are kept. One that leaves is replaced by what it points to, unless `keeps_link(name, target)`.
    `replaced`: other contents for files of the tree, by name. `skipped`: names that are left out; `excluded`: paths.
    """
    reader = _Reader(
        os.path.realpath(root), DigestCache(cache_folder, root), keeps_link, replaced or {}, skipped, excluded
    )
    try:
        reader.take(reader.root, "", ())
    except OSError as error:
        raise CannotMeasure(
            f"{error.filename or root}: {error.strerror or error}; it is needed on another machine"
        ) from error
    reader.cache.save()
    return Manifest(root, tuple(reader.entries), tuple(reader.notes))


class _Reader:
    def __init__(
        self,
        root: str,
        cache: DigestCache,
        keeps_link: Callable[[str, str], bool],
        replaced: Mapping[str, bytes],
        skipped: Collection[str],
        excluded: Collection[str],
    ) -> None:
        self.root = root
        self.cache = cache
        self.entries: list[Entry] = []
        self.notes: list[str] = []
        self._keeps_link = keeps_link
        self._replaced = replaced
        self._skipped = skipped
        self._excluded = {os.path.realpath(path) for path in excluded}

    def take(self, path: str, name: str, above: tuple[str, ...]) -> None:
        """`above`: the real paths of the folders on the way, so that a link to one of them does not go round for ever."""
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            self._take_link(path, name, above)
        elif stat.S_ISDIR(status.st_mode):
            self._take_folder(path, name, stat.S_IMODE(status.st_mode), above)
        elif stat.S_ISREG(status.st_mode):
            self._take_file(path, name, status)
        else:
            self.notes.append(f"{path} is neither a file, a folder nor a link, and was not sent")

    def _take_folder(self, path: str, name: str, mode: int, above: tuple[str, ...]) -> None:
        real = os.path.realpath(path)
        if real in above or len(above) > _MOST_DEPTH:
            self.notes.append(f"{path} leads back to {real}, and was not sent")
            return
        self.entries.append(Entry(name, "folder", mode | stat.S_IRWXU))
        for entry in sorted(os.listdir(path)):
            if entry not in self._skipped and os.path.join(real, entry) not in self._excluded:
                self.take(os.path.join(path, entry), f"{name}/{entry}" if name else entry, (*above, real))

    def _take_file(self, path: str, name: str, status: os.stat_result) -> None:
        mode, mtime_s = stat.S_IMODE(status.st_mode) & 0o777 | stat.S_IRUSR, int(status.st_mtime)
        content = self._replaced.get(name)
        if content is not None:
            digest = hashlib.sha256(content).hexdigest()
            self.entries.append(Entry(name, "file", mode, len(content), mtime_s, digest, source=None, content=content))
            return
        digest = self.cache.digest(path, name, status)
        self.entries.append(Entry(name, "file", mode, status.st_size, mtime_s, digest, source=path))

    def _take_link(self, path: str, name: str, above: tuple[str, ...]) -> None:
        target = os.readlink(path)
        stays = not os.path.isabs(target) and is_within(
            os.path.normpath(os.path.join(os.path.dirname(path), target)), self.root
        )
        if stays or self._keeps_link(name, target):
            self.entries.append(Entry(name, "link", target=target))
            return
        try:
            status = os.stat(path)
        except OSError:
            self.notes.append(f"{path} points to {target}, which does not exist, and was not sent")
            return
        self.notes.append(f"{path} points out of its folder; what it points to was sent in its place")
        if stat.S_ISDIR(status.st_mode):
            self._take_folder(path, name, stat.S_IMODE(status.st_mode), above)
        elif stat.S_ISREG(status.st_mode):
            self._take_file(path, name, status)


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _text(part: object) -> str:
    """Names are bytes that need not be UTF-8."""
    return "\0" + os.fsencode(part).hex() if isinstance(part, str) and not part.isascii() else str(part)
