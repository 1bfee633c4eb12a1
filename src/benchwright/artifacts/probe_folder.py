"""The folder on the path of measured scripts: benchprobe, the launcher of servers, benchmodels.

It runs inside every measured program, so its content is compared with this benchwright's own before it is used.
"""

from __future__ import annotations

import marshal
import os
import shutil
import stat
import struct
import sys
from collections.abc import Callable
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER
from pathlib import Path

import benchprobe
from benchwright import agent
from benchwright.agent.folder_digest import SERVED_CLIENT, digest_of, folder_digest
from benchwright.core.errors import CannotMeasure
from benchwright.core.whole_file import alone_in

_PROBE = ("benchprobe",)
_ATTEMPTS = 3  # another benchwright may be repairing the same folder


def probe_folder(
    artifacts: Path, tell: Callable[[str], None] | None = None, packages: tuple[str, ...] = _PROBE
) -> Path:
    """A folder below `artifacts` that holds this version of `packages` and nothing else; made once for each content.

    One with any other content, after a crash or an edit, is replaced, and `tell` called.
    """
    digest, files = _source(packages)
    folder = artifacts / f"benchprobe-{digest[:16]}"
    for _ in range(_ATTEMPTS):
        if _holds(folder, digest):
            return folder
        if os.path.lexists(folder) and tell is not None:
            tell(f"{folder} was not the benchprobe of this benchwright (changed, or half-written); it was replaced")
        _put(files, folder, digest)
    raise CannotMeasure(f"{folder}: its files change while being written; choose another folder with --base")


def probe_digest(packages: tuple[str, ...]) -> str:
    """Of the content of `packages`."""
    return _source(packages)[0]


class ProbeWatch:
    """Watches benchprobe's folder during a run: a program that changes it would affect later measurements."""

    def __init__(
        self, artifacts: Path, tell: Callable[[str], None] | None = None, packages: tuple[str, ...] = _PROBE
    ) -> None:
        self._artifacts = artifacts
        self._packages = packages
        self.folder = probe_folder(artifacts, tell, packages)
        self._seen = _signature(self.folder)

    def was_changed(self) -> bool:
        """Whether its files changed since the last call; if so, they have been restored."""
        if _signature(self.folder) == self._seen:
            return False
        changed: list[str] = []
        probe_folder(self._artifacts, changed.append, self._packages)
        self._seen = _signature(self.folder)
        return bool(changed)


def _signature(folder: Path) -> set[tuple[str, int, int, int]]:
    """Much cheaper than a digest. A file's change time cannot be set back."""
    found = set()
    try:
        for place, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in (*names, *folders):
                status = os.lstat(os.path.join(place, name))
                if stat.S_ISDIR(status.st_mode):
                    found.add((os.path.join(place, name), status.st_ino, 0, 0))  # byte code beside it changes its times
                else:
                    found.add((os.path.join(place, name), status.st_ino, status.st_size, status.st_ctime_ns))
    except OSError:
        pass  # it has gone, which is a difference
    return found


def _root() -> str:
    """Where the packages lie side by side, installed or not."""
    return os.path.dirname(os.path.dirname(benchprobe.__file__))


@cache
def _source(packages: tuple[str, ...]) -> tuple[str, dict[str, bytes]]:
    """The digest the folder is to have, and its files."""
    files, root = {}, _root()
    for package in packages:
        for place, folders, names in os.walk(os.path.join(root, package)):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for path in (os.path.join(place, name) for name in names if name.endswith((".py", ".typed"))):
                with open(path, "rb") as file:
                    files[os.path.relpath(path, root)] = file.read()
    files[SERVED_CLIENT] = (Path(agent.__file__).parent / "served_client.py").read_bytes()
    return digest_of(files), files


def _holds(folder: Path, digest: str) -> bool:
    try:
        return folder_digest(str(folder)) == digest
    except OSError:
        return False


def _put(files: dict[str, bytes], folder: Path, digest: str) -> None:
    """Written aside, then renamed, so that a killed benchwright leaves no half-written folder."""
    import tempfile

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone_in(folder.parent):
            if _holds(folder, digest):
                return  # another benchwright was quicker
            aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".benchprobe-"))
            new, old = aside / "new", aside / "old"
            try:
                _write(files, new)
                _write_bytecode(new)
                if os.path.lexists(folder):
                    os.rename(folder, old)
                os.rename(new, folder)
            except OSError as error:
                # Where folders cannot be locked, another may have put its own there; it is checked next.
                if not folder.is_dir() and not isinstance(error, FileNotFoundError):
                    raise
            finally:
                shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise CannotMeasure(f"{folder}: {error.strerror or error}; choose another folder with --base") from error


def _write(files: dict[str, bytes], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _write_bytecode(folder: Path) -> None:
    """As Python would beside each module. Otherwise the first program would be slower, and each where Python writes none."""
    for path in folder.rglob("*.py"):
        code = _bytecode(str(path.relative_to(folder)))
        if code is not None:
            source = path.stat()
            header = struct.pack("<4sIII", MAGIC_NUMBER, 0, int(source.st_mtime) & 0xFFFFFFFF, source.st_size)
            cached = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            cached.parent.mkdir(exist_ok=True)
            cached.write_bytes(header + code)


@cache
def _bytecode(name: str) -> bytes | None:
    """Of our module in that file, which Python has usually compiled before; None if it compiles for something else."""
    path = os.path.join(_root(), name)
    if sys.flags.optimize or not os.path.isfile(path):
        return None
    return marshal.dumps(SourceFileLoader(name, path).get_code(name))
