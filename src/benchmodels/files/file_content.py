"""Which files a model file consists of. Standard library only, since benchwright uses this too."""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from typing import List, Sequence

SUFFIXES = (".onnx", ".pt2", ".xml", ".tflite")  # of model files
# In an ONNX file, an entry "location" names a file of weights: the name's length in one byte, then the name.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])([^\x00]{1,127})", re.DOTALL)


def files_of(path: str) -> List[str]:
    """The model file itself and the files that hold its weights."""
    stem, suffix = os.path.splitext(os.path.abspath(path))
    if suffix.lower() == ".xml":
        return [path, *(name for name in [f"{stem}.bin"] if os.path.isfile(name))]
    if suffix.lower() != ".onnx" or not os.path.getsize(path):
        return [path]
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = {found[2][: found[1][0]].decode(errors="replace") for found in _LOCATION.finditer(content)}
    return [path, *(os.path.join(os.path.dirname(stem), name) for name in sorted(names))]


def digest_of(paths: Sequence[str]) -> str:
    """A digest of the contents of these files, in this order."""
    found = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            for block in iter(lambda: file.read(1 << 20), b""):
                found.update(block)
        found.update(b"\0")
    return found.hexdigest()
