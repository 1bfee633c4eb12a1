"""New benchmarks from the packaged templates: a folder that runs as it is."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from benchwright.core.errors import CannotMeasure, InvalidInput, did_you_mean
from benchwright.kinds.suite.dialect import dialects

TEMPLATES = ("simple", "stdout", "model")  # folders of benchwright/templates; dialects of suites add theirs
SCRIPT = "script"  # one file of a corpus, not a folder
_SUFFIX = ".template"  # keeps what is no code of ours from being taken for it
_PLACEHOLDER = "BENCHMARK_NAME"
_EXECUTABLE = ("prepare.py",)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}", re.ASCII)


def make_benchmark(name: str, template: str, parent: Path, *, force: bool = False) -> Path:
    """Creates the folder `parent/name`. An existing one is refused, unless `force`: then the
    template's files are written into it, over those of the same name."""
    check_name(name)
    files = template_files(template, name)
    folder = parent / name
    if folder.exists() or folder.is_symlink():
        _check_existing(folder, force)
    try:
        if folder.is_dir():
            _write(folder, files)
        else:
            _write_aside(folder, files)
    except OSError as error:
        raise CannotMeasure(f"{error.filename or folder}: {error.strerror}; choose another place with --dir") from None
    return folder


def make_script(name: str, parent: Path, *, force: bool = False) -> Path:
    """Creates `parent/name.py`, which builds and calls a model. An existing file is refused, unless `force`."""
    check_name(name)
    path = parent / f"{name}.py"
    if (path.exists() or path.is_symlink()) and not force:
        raise InvalidInput(
            "exists already", where=str(path), remedy="choose another name, or overwrite it with --force"
        )
    (text,) = template_files(SCRIPT, name).values()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CannotMeasure(f"{error.filename or path}: {error.strerror}; choose another place with --dir") from None
    return path


def check_name(name: str) -> None:
    """A benchmark's name is a folder, an entry of a suite and the stem of its files: InvalidInput unless it can be all."""
    if any(mark in name for mark in ("/", "\\")):
        raise InvalidInput(f"'{name}' is a path, not a name", where="NAME", remedy="choose the folder with --dir")
    if name.startswith("_"):
        raise InvalidInput(f"'{name}' would never run: names that begin with _ are private", where="NAME",
                           remedy=f"call it {name.lstrip('_') or 'something else'}")  # fmt: skip
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"'{name}' is not a name", where="NAME", remedy="begin with a letter, then letters, digits, - and _"
        )
    import yaml

    if not isinstance(yaml.safe_load(name), str):
        raise InvalidInput(f"YAML does not read '{name}' as text", where="NAME", remedy="choose another")


def template_files(template: str, name: str) -> dict[str, str]:
    """The files of a template, by name, filled in for a benchmark called `name`."""
    folders = {own: Path(__file__).parents[3] / "templates" / own for own in (*TEMPLATES, SCRIPT)}
    if template not in folders:
        folders = {theirs: Path(at) for each in dialects() for theirs, at in each.templates().items()} | folders
    if template not in folders:
        remedy = did_you_mean(template, folders) or f"choose from {', '.join(folders)}"
        raise InvalidInput(f"there is no template '{template}'", where="--template", remedy=remedy)
    return {
        file.name.removesuffix(_SUFFIX): file.read_text(encoding="utf-8").replace(_PLACEHOLDER, name)
        for file in sorted(folders[template].iterdir(), key=lambda file: file.name)
        if file.name.endswith(_SUFFIX)
    }


def _check_existing(folder: Path, force: bool) -> None:
    if not folder.is_dir():
        raise InvalidInput("exists and is not a folder", where=str(folder), remedy="choose another name")
    if not force:
        raise InvalidInput("exists already", where=str(folder), remedy="choose another name, or add --force")


def _write_aside(folder: Path, files: Mapping[str, str]) -> None:
    """The whole folder, or none."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        aside.mkdir()
        _write(aside, files)
        aside.rename(folder)
    except OSError:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.write_text(text, encoding="utf-8")
        if name in _EXECUTABLE:
            path.chmod(path.stat().st_mode | 0o111)
