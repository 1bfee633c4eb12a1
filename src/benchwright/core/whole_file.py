"""Files written whole or not at all: the only way benchwright writes a named file.

The content goes to a temporary file, which is synced and renamed: a reader never sees half a file, and a full disk leaves
the old one intact. An existing file keeps its mode and owner. What cannot safely be replaced (a device, a pipe, somebody
else's file, or one in a read-only folder) is written in place, as a shell's `>` would. Links are followed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from benchwright.core.errors import BenchwrightError, CannotWrite, InvalidInput
from benchwright.core.private_files import file_mode

_MOST_LINKS = 40
_NOT_HERE = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
)  # no new file can be made in the folder; the file itself may be writable
_WRONG_PATH = {
    errno.EISDIR: "is a folder",
    errno.ENOENT: "its folder does not exist",
    errno.ENOTDIR: "part of the path is not a folder",
    errno.EEXIST: "part of the path is not a folder",  # when making its folder
    errno.ELOOP: "is a broken link",
    errno.ENAMETOOLONG: "the name is too long",
}


def write_own(path: str | os.PathLike[str], content: bytes) -> None:
    """Like `write_whole`, for benchwright's own files: removes a pipe or device of that name first, which is not ours."""
    with suppress(OSError):
        kind = os.lstat(path).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISLNK(kind)):
            os.unlink(path)
    write_whole(path, content)


def write_whole(path: str | os.PathLike[str], content: bytes, *, mode: int | None = None, sync: bool = True) -> None:
    """See `written_whole`."""
    with written_whole(path, mode=mode, sync=sync) as aside, open(aside, "wb") as file:
        file.write(content)


@contextmanager
def written_whole(path: str | os.PathLike[str], *, mode: int | None = None, sync: bool = True) -> Iterator[str]:
    """Yields the name of an empty file to fill; when the block succeeds, it becomes `path`.

    `mode`: its permissions; None keeps those of an existing file, and makes a new one as private as its folder, else by
    the umask. `sync`: whether the content must survive a power cut. Raises OSError; see `unwritable`.
    """
    name = os.fspath(path)
    target = _replaceable(name)
    aside = None if target is None else _made_beside(target, mode)
    if target is None or aside is None:
        import tempfile

        with tempfile.NamedTemporaryFile(prefix="benchwright-") as held:
            yield held.name
            _write_into(name, held.name)
        return
    try:
        yield aside
        if sync:
            _sync(aside)
        if _takes_after(aside, target, mode):
            os.replace(aside, target)
        else:
            _write_into(target, aside)
    finally:
        with suppress(OSError):
            os.unlink(aside)


@contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Holds a lock on a folder: processes that change a file in it do so one after the other."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot lock folders
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def unwritable(path: str | os.PathLike[str], error: OSError) -> BenchwrightError:
    """The error for a user who named `path`: InvalidInput if it cannot name a file, else CannotWrite."""
    where = os.fspath(path)
    if error.errno in _WRONG_PATH:
        return InvalidInput(_WRONG_PATH[error.errno], where=where, remedy="choose another place")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CannotWrite(f"{where}: the disk is full; free some space or choose another place")
    return CannotWrite(f"{where}: {error.strerror or error}; choose another place")


def _replaceable(path: str) -> str | None:
    """The file that a rename may replace, links followed; None for what must be written in place."""
    for _ in range(_MOST_LINKS):
        folder = os.path.realpath(os.path.dirname(path) or ".")
        if f"{folder}/".startswith(("/dev/", "/proc/")):
            return None  # such as /dev/stdout, which may be a file the shell has open
        try:
            kind = os.lstat(path).st_mode
        except FileNotFoundError:
            return path
        if stat.S_ISLNK(kind):
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        elif stat.S_ISDIR(kind):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        elif not stat.S_ISREG(kind):
            return None
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        else:
            return path
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _made_beside(target: str, mode: int | None) -> str | None:
    """A new, empty file in the folder of `target`; None if only `target` itself can be written there.

    Created exclusively, with an unguessable name: in a shared folder somebody may have placed a link there.
    """
    folder, name = os.path.split(target)
    aside = os.path.join(folder, f".{name[:80]}.{os.urandom(6).hex()}")
    private = 0o600 if os.path.lexists(target) else file_mode(target)  # until it gets the mode of the old one
    try:
        os.close(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private if mode is None else mode))
    except OSError as error:
        if error.errno in _NOT_HERE and os.path.lexists(target):
            return None
        raise
    return aside


def _takes_after(aside: str, target: str, mode: int | None) -> bool:
    """Gives `aside` the mode and owner of the file it replaces; False if that is not allowed."""
    if mode is not None:
        os.chmod(aside, mode)
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return True
    new = os.stat(aside)
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        try:
            os.chown(aside, old.st_uid, old.st_gid)
        except PermissionError:
            return False
    if mode is None:
        os.chmod(aside, stat.S_IMODE(old.st_mode))
    return True


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_into(path: str, source: str) -> None:
    with open(source, "rb") as content, open(path, "wb") as file:
        while block := content.read(1 << 20):
            file.write(block)
