"""New benchmarks from the packaged templates: a folder that runs as it is."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from benchwright.core.errors import CannotMeasure, InvalidInput, did_you_mean

# What `--help` says of each. The folders of this name are in benchwright/templates.
TEMPLATES = {
    "simple": "a loop timed by benchprobe; the standard library only",
    "voir": "a loop instrumented with voir and giving, as milabench's are",
    "stdout": "a program that prints its numbers, and the patterns to read them",
    "model": "a torch model and its training loop",
}
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
    known = (*TEMPLATES, SCRIPT)
    if template not in known:
        remedy = did_you_mean(template, known) or f"choose from {', '.join(known)}"
        raise InvalidInput(f"there is no template '{template}'", where="--template", remedy=remedy)
    folder = resources.files("benchwright") / "templates" / template
    return {
        file.name.removesuffix(_SUFFIX): file.read_text(encoding="utf-8").replace(_PLACEHOLDER, name)
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
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
