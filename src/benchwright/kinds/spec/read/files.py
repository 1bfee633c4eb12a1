"""Files that a specification names: where they come from, and their checksums."""

from __future__ import annotations

import os
from typing import Any

from benchwright.core.artifact import Artifact
from benchwright.kinds.spec.observers.converters import REGEX, check_converter
from benchwright.kinds.spec.read.keys import DIRECTORY
from benchwright.kinds.spec.spec_test import SpecConverter, SpecOutput
from benchwright.kinds.text_file import Path
from benchwright.kinds.yaml.value_types import PlacedValues


def artifacts_in(file: PlacedValues, value: Any, path: Path) -> tuple[Artifact, ...]:
    """Of a map of files, such as `files`."""
    return tuple(artifact_of(file, key, entry, (*path, key)) for key, entry in (value or {}).items())


def artifact_of(file: PlacedValues, key: str, entry: Any, path: Path) -> Artifact:
    """One file: a map, or, as in 2018, a path."""
    if isinstance(entry, str):
        entry = {"location": entry}
    location = str(entry.get("location") or "")
    if not location:
        raise file.error(f"file '{key}' has no location", path, "say where it comes from: a URL or a path", key=True)
    _check(file, location, (*path, "location"))
    filename = str(entry.get("filename") or os.path.basename(location.rstrip("/")) or key)
    _check_name(file, filename, (*path, "filename"))
    md5 = entry.get("md5") or None
    return Artifact(
        key=key,
        filename=filename,
        location=location,
        md5=None if md5 is None or md5 == DIRECTORY else str(md5).lower(),
        sha256=str(entry["sha256"]).lower() if entry.get("sha256") else None,
        directory=md5 == DIRECTORY,
        unpack=str(entry.get("unpack", False)).lower() == "true",
    )


def library_of(file: PlacedValues, entry: Any, path: Path) -> Artifact:
    location = str(entry.get("location") or "")
    if not location:
        raise file.error("the library has no location", path, "say where it comes from: a URL or a path")
    target = str(entry.get("target") or os.path.basename(location))
    return Artifact(key=target, filename=os.path.basename(location.rstrip("/")) or target, location=location)


def output_of(file: PlacedValues, key: str, entry: Any, path: Path) -> SpecOutput:
    """A file that the program writes; without a location, in the launch's folder."""
    if isinstance(entry, str):
        entry = {"location": entry}
    location = str(entry.get("location") or "")
    filename = str(entry.get("filename") or os.path.basename(location) or f"{key}.txt")
    _check_name(file, filename, (*path, "filename"))
    converter = converter_of(file, entry.get("converter"), (*path, "converter"))
    if converter is not None and converter.name == REGEX:
        what = f"the converter '{REGEX}' reads what a program prints, not its files"
        raise file.error(what, (*path, "converter"), "have it printed, or use json_converter")
    return SpecOutput(
        key=key,
        filename=filename,
        location=location or f"{{TGTDIR}}/{filename}",
        converter=converter,
    )


def converter_of(file: PlacedValues, entry: Any, path: Path) -> SpecConverter | None:
    if entry is None:
        return None
    name, args = entry.get("name"), entry.get("args")
    if not name:
        raise file.error("the converter has no name", path, "name it, such as json_converter", key=True)
    if args is not None and not isinstance(args, dict):
        raise file.error("args is not a map", (*path, "args"), 'write {"identifier": "NAME"}')
    check_converter(name, args or {}, where=file.path, line=file.place(path).line)
    return SpecConverter(name=name, args=args or {})


def _check_name(file: PlacedValues, name: str, path: Path) -> None:
    """A file's name must not lead out of the folder it is put into."""
    if "/" in name or "\\" in name or name in (".", "..") or not name.isprintable() or name.startswith("-"):
        raise file.error(f"'{name}' is not the name of a file", path, "give a plain name such as model.onnx")


def _check(file: PlacedValues, location: str, path: Path) -> None:
    if "\0" in location or "\n" in location:
        raise file.error("the location holds a control character", path, "remove it")
