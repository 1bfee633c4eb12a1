"""Cached builds, by content: one folder per entry, written aside and renamed, verified at every use.

<folder>/<key>/               the entry: the build's files, and manifest.json with the size and hash of each file
<folder>/<key>.lock           held shared while the entry is used, exclusively while it is made
<folder>/<key>.making-…       being written; the holder of the lock removes leftovers of a killed builder
<folder>/<key>.corrupt-N      an entry whose files did not match its manifest
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import time
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from benchmodels.types import Details

FORMAT = 1
MANIFEST = "manifest.json"


class Corrupt(Exception):
    """The files of an entry do not match its manifest; the text names the first."""


class FileMark(NamedTuple):
    """A file's line in the manifest."""

    size: int
    sha256: str


def described(folder: Path) -> Dict[str, Dict[str, Any]]:
    """Size and hash of each file in `folder`, all synced to disk."""
    found: Dict[str, Dict[str, Any]] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            found[path.relative_to(folder).as_posix()] = _mark(path, sync=True)._asdict()
        sync_folder(Path(place))
    return found


def read_manifest(folder: Path, key: str) -> Details:
    """FileNotFoundError if there is no such folder; Corrupt without a valid manifest."""
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    try:
        if not (folder / MANIFEST).is_file():  # reading a pipe would block
            raise Corrupt(f"{MANIFEST} is missing")
        raw: Any = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise Corrupt(f"{MANIFEST}: {type(error).__name__}") from error
    kinds = {"mark": str, "key": str, "parts": dict, "steps": list, "files": dict}
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise Corrupt(f"{MANIFEST} is of another format")
    manifest: Dict[str, Any] = raw
    if not all(isinstance(manifest.get(name), kind) for name, kind in kinds.items()) or manifest["key"] != key:
        raise Corrupt(f"{MANIFEST} is not that of this entry")
    return manifest


def verify(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Corrupt if a file is missing or changed. Reads every byte; this is never timed."""
    files: Mapping[str, Any] = manifest["files"]
    if not files:
        raise Corrupt("it has no files")
    for name, expected in files.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise Corrupt(f"{name} is outside of it")
        try:
            if not path.is_file():
                raise Corrupt(f"{name} is missing")
            if path.stat().st_size != expected["size"]:
                raise Corrupt(f"{name} has {path.stat().st_size} bytes, not {expected['size']}")
            if _mark(path).sha256 != expected["sha256"]:
                raise Corrupt(f"the content of {name} has changed")
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise Corrupt(f"{name}: {type(error).__name__}: {error}") from error


def _mark(path: Path, sync: bool = False) -> FileMark:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
        if sync:
            os.fsync(file.fileno())
        return FileMark(file.tell(), digest.hexdigest())


def write_synced(path: Path, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Syncs a folder's names to disk, not only the contents."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


POLL_S = 0.05
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
IF_NEEDED, ALWAYS, NEVER = "if_needed", "always", "never"

Step = Mapping[str, Any]  # as the `build_step` event has it
Make = Callable[[Path], Optional[Sequence[Step]]]


class CacheFailure(Exception):
    """No entry available. `kind`: that of the `failure` event: not_found, timed_out or error."""

    stage = "load"

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.operator = None


class CachedBuild:
    """A verified entry. It is not replaced before `release`, or the end of this object or process.

    `steps`: those of its build; `cached`: built earlier; `verify_s`: the time of the check.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], cached: bool, verify_s: float, lock: _Lock) -> None:
        self.folder = folder
        self.cached = cached
        self.verify_s = verify_s
        self.key: str = manifest["key"]
        self.parts: Details = manifest["parts"]
        self.steps: List[Details] = manifest["steps"]
        self.made_at: float = manifest["made_at"]
        self._lock = lock

    def release(self) -> None:
        self._lock.release()

    def __del__(self) -> None:
        self.release()


class BuildCache:
    """The entries in one folder. `say` takes messages for the user."""

    def __init__(self, folder: os.PathLike[str] | str, say: Callable[[str], None] = lambda text: None) -> None:
        self._folder = Path(folder)
        self._say = say

    @staticmethod
    def key(parts: Mapping[str, Any]) -> str:
        """Independent of the order of `parts`; TypeError if JSON cannot hold them."""
        text = json.dumps([FORMAT, parts], sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def entry(
        self,
        key: str,
        make: Make,
        *,
        parts: Optional[Mapping[str, Any]] = None,
        about: Optional[Mapping[str, Any]] = None,
        rebuild: str = IF_NEEDED,
        patience_s: Optional[float] = None,
    ) -> CachedBuild:
        """The entry, made by `make` if there is none. `make` writes into the given folder and returns its steps.

        `about`: what people want to know of it, such as its name; not part of its key.

        An exception of `make` is passed on and leaves nothing behind; CacheFailure if there is no entry and building is
        forbidden, if the disk is full, or if another process has been building it for longer than `patience_s`.
        """
        if rebuild not in (IF_NEEDED, ALWAYS, NEVER):
            raise ValueError(f"rebuild: '{rebuild}' is not one of {IF_NEEDED}, {ALWAYS}, {NEVER}")
        give_up = None if patience_s is None else time.monotonic() + patience_s
        with _full_disk_reported(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            made: Optional[str] = None  # the mark of our own build
            while True:
                lock = self._lock(key, fcntl.LOCK_SH, give_up)
                try:
                    found = None if rebuild == ALWAYS and made is None else self._verified(key, made, lock)
                except BaseException:
                    lock.release()
                    raise
                if found is not None:
                    return found
                lock.release()
                made = self._made(key, make, {**(about or {}), "parts": dict(parts or {})}, rebuild, give_up) or made

    def drop(self, entry: CachedBuild) -> None:
        """Removes an entry, unless another process uses it. Its manifest and facts are kept beside, as `<key>.dropped.json`."""
        entry.release()
        lock = _Lock(self._folder / f"{entry.key}.lock")
        try:
            if lock.acquire(fcntl.LOCK_EX):
                kept = {path.name: json.loads(path.read_text()) for path in sorted(entry.folder.glob("*.json"))}
                write_synced(self._folder / f"{entry.key}.dropped.json", json.dumps(kept, indent=1))
                shutil.rmtree(entry.folder, ignore_errors=True)
        except (OSError, ValueError) as error:
            self._say(f"the build could not be removed: {error}")
        finally:
            lock.release()

    def _verified(self, key: str, made: Optional[str], lock: _Lock) -> Optional[CachedBuild]:
        """The entry, if there is a valid one."""
        folder = self._folder / key
        began = time.perf_counter()
        try:
            manifest = read_manifest(folder, key)
            if manifest["mark"] != made:  # our own build was hashed a moment ago
                verify(folder, manifest)
        except (Corrupt, FileNotFoundError):
            return None
        with contextlib.suppress(OSError):
            os.utime(self._folder / f"{key}.lock")  # when it was last used
        return CachedBuild(folder, manifest, manifest["mark"] != made, time.perf_counter() - began, lock)

    def _made(
        self, key: str, make: Make, about: Mapping[str, Any], rebuild: str, give_up: Optional[float]
    ) -> Optional[str]:
        """Builds the entry, unless another process did meanwhile; returns the build's mark."""
        lock = self._lock(key, fcntl.LOCK_EX, give_up)
        try:
            self._remove_leftovers(key)
            if self._is_sound(key, aside=rebuild != NEVER) and rebuild != ALWAYS:
                return None
            if rebuild == NEVER:
                raise CacheFailure("not_found", "no cached build, and --rebuild never forbids building one")
            return self._build(key, make, about)
        finally:
            lock.release()

    def _is_sound(self, key: str, aside: bool) -> bool:
        """Whether there is a valid entry; a damaged one is moved aside."""
        folder = self._folder / key
        try:
            verify(folder, read_manifest(folder, key))
            return True
        except FileNotFoundError:
            return False
        except Corrupt as error:
            if aside:
                put_at = self._move_aside(key)
                self._say(
                    f"a cached build was damaged ({error}) and is being rebuilt; the damaged one was moved to {put_at}"
                )
            else:
                self._say(f"a cached build is damaged: {error}")
            return False

    def _move_aside(self, key: str) -> Path:
        for number in range(1, 1000):
            target = self._folder / f"{key}.corrupt-{number}"
            if not target.exists():
                os.rename(self._folder / key, target)
                return target
        raise CacheFailure("error", f"{self._folder} holds a thousand damaged builds of {key}; remove them")

    def _build(self, key: str, make: Make, about: Mapping[str, Any]) -> str:
        mark = uuid.uuid4().hex
        aside = self._folder / f"{key}.making-{mark}"
        aside.mkdir()
        try:
            steps = make(aside)
            manifest: Details = {
                **about,
                "format": FORMAT,
                "key": key,
                "mark": mark,
                "made_at": time.time(),
                "steps": [dict(step) for step in steps or ()],
                "files": described(aside),
            }
            if not manifest["files"]:
                raise CacheFailure("error", "the build left no files")
            write_synced(aside / MANIFEST, json.dumps(manifest, indent=1))
            sync_folder(aside)
            self._publish(key, aside)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        return mark

    def _publish(self, key: str, aside: Path) -> None:
        """Replaces an older entry, which the lock says is not in use."""
        folder, older = self._folder / key, self._folder / f"{key}.making-older"
        if folder.exists():
            os.rename(folder, older)
        os.rename(aside, folder)
        sync_folder(self._folder)
        shutil.rmtree(older, ignore_errors=True)

    def _remove_leftovers(self, key: str) -> None:
        older = self._folder / f"{key}.making-older"
        if older.exists() and not (self._folder / key).exists():
            os.rename(older, self._folder / key)  # killed between the two renames
        for left in self._folder.glob(f"{key}.making-*"):
            shutil.rmtree(left, ignore_errors=True)

    def _lock(self, key: str, kind: int, give_up: Optional[float]) -> _Lock:
        lock = _Lock(self._folder / f"{key}.lock")
        reported = False
        while not lock.acquire(kind):
            if not reported:
                reported = True
                self._say("another process is using or building the same model; waiting for it")
            if give_up is not None and time.monotonic() > give_up:
                lock.release()
                raise CacheFailure("timed_out", "another process has been building the same model for too long")
            time.sleep(POLL_S)
        return lock


class _Lock:
    """A lock file. Without one (read-only folder, no flock) everybody gets the lock: published entries are complete anyway."""

    def __init__(self, path: Path) -> None:
        self._file: Optional[int] = None
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise

    def acquire(self, kind: int) -> bool:
        if self._file is None:
            return True
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                raise
        return True

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextlib.contextmanager
def _full_disk_reported(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            text = f"no space left for the build in {folder} ({os.strerror(error.errno or 0)}); nothing was kept"
            raise CacheFailure("error", text) from error
        raise
