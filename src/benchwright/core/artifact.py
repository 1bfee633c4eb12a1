"""A file a benchmark needs, known by its checksums wherever it lies."""

from __future__ import annotations

import msgspec


class Artifact(msgspec.Struct, frozen=True, kw_only=True, rename={"key": "name"}):
    """`location`: http(s)://, file:, s3://, gs://, hf://, an absolute path, one relative to the specification, or `//…` below
    the root folder of models; empty for what benchwright made itself. With both sums, both are checked."""

    key: str  # what the specification calls it
    filename: str  # what programs see it called
    location: str = ""
    md5: str | None = None
    sha256: str | None = None
    directory: bool = False  # a folder, which has no checksum
    unpack: bool = False  # an archive: programs get the folder it was unpacked into
