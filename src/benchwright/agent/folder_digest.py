"""A digest of a folder of Python modules: equal on every node that has the same files."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = struct.Struct("<4sIII")  # of byte code: magic, flags, then time and size of its source

SERVED_CLIENT = "benchprobe/served_client.py"  # the copy of `agent/served_client.py`, which runs on the Python of measured programs, but not inside them


def folder_digest(folder: str) -> str:
    """Of all names and contents in `folder`, without byte code of the sources beside it.

    Any other file counts, and so does a link: a `sitecustomize.py` put there would run in every measured program.
    OSError if something cannot be read.
    """
    contents = {}
    for path, name in _files(folder, ""):
        if os.path.islink(path):
            contents[f"{name} (a link)"] = b""
            continue
        with open(path, "rb") as file:
            contents[name] = file.read()
    return digest_of(contents)


def digest_of(contents: Mapping[str, bytes]) -> str:
    """The digest of a folder with these files, by name."""
    import hashlib  # loads OpenSSL, which few agents need

    digest = hashlib.sha256()
    for name in sorted(contents):
        digest.update(b"%s\0%d\0" % (os.fsencode(name), len(contents[name])) + contents[name])
    return digest.hexdigest()


def _files(folder: str, prefix: str) -> list[tuple[str, str]]:
    """Path and name of everything that counts."""
    found: list[tuple[str, str]] = []
    with os.scandir(folder) as listed:
        entries = list(listed)
    for entry in entries:
        name = prefix + entry.name
        if not entry.is_dir(follow_symlinks=False):
            found.append((entry.path, name))
        elif entry.name == "__pycache__":
            found += [(p, n) for p, n in _files(entry.path, f"{name}/") if not _is_byte_code_of(p, folder)]
        else:
            found += _files(entry.path, f"{name}/")
    return found


def _is_byte_code_of(path: str, folder: str) -> bool:
    """Whether its header says that Python compiled it from an unchanged source in `folder`."""
    module, _, rest = os.path.basename(path).partition(".")
    if not rest.endswith(".pyc") or os.path.islink(path):
        return False
    try:
        source = os.stat(os.path.join(folder, f"{module}.py"))
        with open(path, "rb") as file:
            _, flags, changed, size = _HEADER.unpack(file.read(_HEADER.size))
    except (OSError, struct.error):
        return False
    return (flags, changed, size) == (0, int(source.st_mtime) & 0xFFFFFFFF, source.st_size & 0xFFFFFFFF)
