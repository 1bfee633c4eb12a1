"""Builds, kept by content: one folder an entry, written aside and renamed, verified at every use.

<folder>/<key>/               the entry: what the build wrote, and manifest.json with the size and hash of each file
<folder>/<key>.lock           held shared while the entry is used, exclusively while it is made
<folder>/<key>.making-…       being written; whoever holds the lock removes what a killed builder left
<folder>/<key>.corrupt-N      an entry whose files were not what its manifest says
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
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence

from benchmodels.build.manifests import (
    FORMAT,
    MANIFEST,
    Corrupt,
    described,
    read_manifest,
    sync_folder,
    verify,
    write_synced,
)

POLL_S = 0.05
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
IF_NEEDED, ALWAYS, NEVER = "if_needed", "always", "never"

Step = Mapping[str, Any]  # as the `build_step` event has it
Make = Callable[[Path], Optional[Sequence[Step]]]


class CacheFailure(Exception):
    """No entry can be had. `kind` is that of the `failure` event: not_found, timed_out or error."""

    stage = "load"

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.operator = None


class CachedBuild:
    """A verified entry. Nobody replaces it until `release`, or as long as this object or its process lives.

    `steps` are those of its build, whenever that was; `cached`: it was there already; `verify_s`: what the check took.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any], cached: bool, verify_s: float, lock: _Lock) -> None:
        self.folder = folder
        self.cached = cached
        self.verify_s = verify_s
        self.key: str = manifest["key"]
        self.parts: Dict[str, Any] = manifest["parts"]
        self.steps: List[Dict[str, Any]] = manifest["steps"]
        self._lock = lock

    def release(self) -> None:
        self._lock.release()

    def __del__(self) -> None:
        self.release()


class BuildCache:
    """The entries in one folder. `say` takes what a user should know."""

    def __init__(self, folder: os.PathLike[str] | str, say: Callable[[str], None] = lambda text: None) -> None:
        self._folder = Path(folder)
        self._say = say

    @staticmethod
    def key(parts: Mapping[str, Any]) -> str:
        """The same for the same parts, whatever their order; TypeError if they are not what JSON can hold."""
        text = json.dumps([FORMAT, parts], sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def entry(
        self,
        key: str,
        make: Make,
        *,
        parts: Optional[Mapping[str, Any]] = None,
        rebuild: str = IF_NEEDED,
        patience_s: Optional[float] = None,
    ) -> CachedBuild:
        """The entry, made by `make` if there is none. `make` writes into the folder it is given and returns its steps.

        What `make` raises is raised, and nothing of it is left; CacheFailure if there is no entry and none may be made, if
        the disk is full, or if another process has been making it for longer than `patience_s`.
        """
        if rebuild not in (IF_NEEDED, ALWAYS, NEVER):
            raise ValueError(f"rebuild: '{rebuild}' is none of {IF_NEEDED}, {ALWAYS}, {NEVER}")
        give_up = None if patience_s is None else time.monotonic() + patience_s
        with _told_without_room(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            made: Optional[str] = None  # the mark of what was built here
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
                made = self._made(key, make, parts or {}, rebuild, give_up) or made

    def _verified(self, key: str, made: Optional[str], lock: _Lock) -> Optional[CachedBuild]:
        """The entry if there is a sound one."""
        folder = self._folder / key
        began = time.perf_counter()
        try:
            manifest = read_manifest(folder, key)
            if manifest["mark"] != made:  # what was written a moment ago was hashed then
                verify(folder, manifest)
        except (Corrupt, FileNotFoundError):
            return None
        return CachedBuild(folder, manifest, manifest["mark"] != made, time.perf_counter() - began, lock)

    def _made(
        self, key: str, make: Make, parts: Mapping[str, Any], rebuild: str, give_up: Optional[float]
    ) -> Optional[str]:
        """Builds the entry unless somebody did so meanwhile; the mark of what was built."""
        lock = self._lock(key, fcntl.LOCK_EX, give_up)
        try:
            self._remove_leftovers(key)
            if self._is_sound(key, aside=rebuild != NEVER) and rebuild != ALWAYS:
                return None
            if rebuild == NEVER:
                raise CacheFailure(
                    "not_found", "there is no cached build of it, and building is not allowed (rebuild: never)"
                )
            return self._build(key, make, parts)
        finally:
            lock.release()

    def _is_sound(self, key: str, aside: bool) -> bool:
        """Whether there is a sound entry; one that is not is moved out of the way."""
        folder = self._folder / key
        try:
            verify(folder, read_manifest(folder, key))
            return True
        except FileNotFoundError:
            return False
        except Corrupt as error:
            if aside:
                put_at = self._move_aside(key)
                self._say(f"a cached build was damaged ({error}) and is made again; the damaged one is {put_at}")
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

    def _build(self, key: str, make: Make, parts: Mapping[str, Any]) -> str:
        mark = uuid.uuid4().hex
        aside = self._folder / f"{key}.making-{mark}"
        aside.mkdir()
        try:
            steps = make(aside)
            manifest = {
                "format": FORMAT,
                "key": key,
                "mark": mark,
                "made_at": time.time(),
                "parts": dict(parts),
                "steps": [dict(step) for step in steps or ()],
                "files": described(aside),
            }
            if not manifest["files"]:
                raise CacheFailure("error", "the build left no file behind")
            write_synced(aside / MANIFEST, json.dumps(manifest, indent=1))
            sync_folder(aside)
            self._publish(key, aside)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        return mark

    def _publish(self, key: str, aside: Path) -> None:
        """In the place of an older one, which is removed: nobody uses it, as the lock says."""
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
        told = False
        while not lock.acquire(kind):
            if not told:
                told = True
                self._say("another process is using or building the same model; waiting for it")
            if give_up is not None and time.monotonic() > give_up:
                lock.release()
                raise CacheFailure("timed_out", "another process has been building the same model for too long")
            time.sleep(POLL_S)
        return lock


class _Lock:
    """A lock file. Where there can be none, or no locks, everybody gets it: what is published is whole all the same."""

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
def _told_without_room(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            text = (
                f"no room is left for the build in {folder} ({os.strerror(error.errno or 0)}); nothing of it was kept"
            )
            raise CacheFailure("error", text) from error
        raise
