"""Where a location of a specification leads to, and which names and paths are allowed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from benchwright.core.artifact import Artifact
from benchwright.core.errors import InvalidInput
from benchwright.core.secrets import redact_text

WEB = ("http", "https")
CLOUD = ("s3", "gs", "gcs", "hf")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_MOST_NAME = 200  # bytes; file systems allow 255, and some room is needed for names made from it


def safe_filename(artifact: Artifact, where: str | None = None) -> str:
    """The name of the file in the cache. InvalidInput for one that could lead out of a folder, or that no file can have."""
    name = artifact.filename or os.path.basename(urlsplit(artifact.location).path) or artifact.key
    bad = (
        "has a slash" if "/" in name or "\\" in name
        else "is no name of a file" if name in ("", ".", "..")
        else "has a control character" if not name.isprintable()
        else "begins with a dash" if name.startswith("-")
        else f"is longer than {_MOST_NAME} bytes" if len(name.encode(errors="surrogateescape")) > _MOST_NAME
        else None
    )  # fmt: skip
    if bad is not None:
        what = f"filename {name[:80]!r} of file '{artifact.key}' {bad}"
        raise InvalidInput(what, where=where, remedy="give a plain name such as model.onnx")
    return name


def shown(location: str) -> str:
    """For messages: without secrets such as the signature in a URL."""
    return redact_text(location)


def remote_url(artifact: Artifact, where: str | None = None) -> str | None:
    """The URL to fetch from; None for a local location, and for what benchwright made itself."""
    location, scheme = artifact.location, _scheme(artifact.location)
    if scheme is None or scheme == "file":
        return None
    if scheme not in (*WEB, *CLOUD):
        known = ", ".join(f"{each}://" for each in (*WEB, *CLOUD))
        what = f"location '{shown(location)}' of file '{artifact.key}': {scheme}: is not supported"
        raise InvalidInput(what, where=where, remedy=f"use {known}, file: or a path")
    parts = urlsplit(location)
    if "@" in parts.netloc:
        what = f"the location of file '{artifact.key}' contains a user name or password"
        raise InvalidInput(what, where=where, remedy="take it out; specifications are shared and stored")
    if not parts.netloc or any(c.isspace() or not c.isprintable() for c in location):
        what = f"location '{shown(location)!a}' of file '{artifact.key}' is not a URL"
        raise InvalidInput(what, where=where, remedy="write it as https://host/path; spaces as %20")
    return location


def local_path(artifact: Artifact, near: Path | None, root: Path | None, where: str | None = None) -> Path:
    """The file or folder that a local location names. `near`: the folder of the specification; None if that is not local.

    InvalidInput if it may not be used: from elsewhere, outside of `root`, or above the specification with nothing to check it.
    """
    location = artifact.location
    name = f"location '{location[:200]}' of file '{artifact.key}'"
    if near is None:
        what = f"{name} is local, but the specification is not"
        raise InvalidInput(what, where=where, remedy="download the specification, or give an https:// location")
    if "\0" in location or not location:
        what = f"{name} is no path" if location else f"file '{artifact.key}' has no location"
        raise InvalidInput(what, where=where, remedy="give a URL or a path")
    if location.startswith("//"):
        return _below_root(location[2:], name, root, where)
    path = _file_url_path(location, name, where) if _scheme(location) == "file" else Path(location).expanduser()
    if path.is_absolute():
        return path
    found = Path(os.path.normpath(near / path))
    has_sum = artifact.md5 is not None or artifact.sha256 is not None
    if not has_sum and not found.is_relative_to(os.path.normpath(near)):
        remedy = "give its md5 or sha256, or an absolute path"
        raise InvalidInput(f"{name} leaves the folder of the specification", where=where, remedy=remedy)
    return found


def _below_root(rest: str, name: str, root: Path | None, where: str | None) -> Path:
    if root is None:
        raise InvalidInput(f"{name} needs a root folder", where=where, remedy="give --root-model-dir DIR")
    base = Path(os.path.normpath(root.absolute()))
    found = Path(os.path.normpath(base / rest.lstrip("/")))
    if not found.is_relative_to(base):
        raise InvalidInput(f"{name} leaves --root-model-dir {root}", where=where, remedy="name a file below it")
    return found


def _file_url_path(location: str, name: str, where: str | None) -> Path:
    parts = urlsplit(location)
    if parts.netloc not in ("", "localhost"):
        raise InvalidInput(f"{name} is on another machine", where=where, remedy="write file:///path")
    path = unquote(parts.path)
    if "\0" in path or not path:
        raise InvalidInput(f"{name} is no path", where=where, remedy="write file:///path")
    return Path(path)


def _scheme(location: str) -> str | None:
    found = _SCHEME.match(location)
    return None if found is None else found[1].lower()
