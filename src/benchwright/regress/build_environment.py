"""Virtual environments of revisions: they see all packages of another environment, and whatever is installed in them hides those.

Nothing is ever installed into the other environment. Its packages are reached through a `.pth` file; its editable
installs of the repository whose revision this is are left out, lest the user's working tree be measured in their place.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.regress.repository import QUICK_S, CommandFailed, call

_ABOUT = (
    "import json, sys, os; print(json.dumps({'executable': sys.executable, 'prefix': sys.prefix, "
    "'version': list(sys.version_info[:2]), 'base': getattr(sys, '_base_executable', None) or sys.executable, "
    "'sites': [p for p in sys.path if os.path.basename(p) in ('site-packages', 'dist-packages')]}))"
)
_INHERITED = "zzz_benchwright_inherited.pth"  # the last one read: what the environment itself installs comes first
_OWN = re.compile(r"python[\d.]*|pip[\d.]*|activate.*|Activate.*|pydoc[\d.]*")


class InheritedPython(msgspec.Struct, frozen=True, kw_only=True):
    """An environment to inherit from. `sites`: the folders its packages are in."""

    executable: str
    prefix: str
    base: str
    version: tuple[int, int]
    sites: tuple[str, ...]


def inherited_python(python: str | None = None, where: str = "--python") -> InheritedPython:
    """Of `python`; None means the one that `python` or `python3` starts, else benchwright's own."""
    found = python or shutil.which("python") or shutil.which("python3") or sys.executable
    if os.sep not in found:
        found = shutil.which(found) or found
    try:
        printed = call([found, "-c", _ABOUT], Path("/"), within_s=QUICK_S)
        return msgspec.convert(json.loads(printed), InheritedPython)
    except (CommandFailed, ValueError) as error:
        raise InvalidInput(f"'{found}' is no Python that works: {error}", where=where) from None


def make_environment(folder: Path, inherited: InheritedPython, without: Path | None) -> Path:
    """Makes it at `folder` and returns its interpreter. `without`: the repository whose editable installs are left out."""
    try:
        call([inherited.base, "-m", "venv", "--without-pip", str(folder)], Path("/"), within_s=10 * QUICK_S)
    except CommandFailed as error:
        raise CannotMeasure(f"{folder}: the virtual environment cannot be made: {error}") from None
    python = folder / "bin" / "python"
    major, minor = inherited.version
    site = folder / "lib" / f"python{major}.{minor}" / "site-packages"
    lines = list(_inherited_lines(inherited, without))
    (site / _INHERITED).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _copy_scripts(Path(inherited.prefix) / "bin", folder / "bin", inherited, python)
    _provide_pip(folder, python)
    return python


def has_editable_install(inherited: InheritedPython, repository: Path) -> bool:
    """Whether it imports a package from the working tree of `repository`."""
    return list(_inherited_lines(inherited, None)) != list(_inherited_lines(inherited, repository))


def variables_of(folder: Path) -> dict[str, str]:
    """As if it were activated, without its PATH."""
    return {"VIRTUAL_ENV": str(folder), "PYTHONNOUSERSITE": "1"}


def _inherited_lines(inherited: InheritedPython, without: Path | None) -> Iterator[str]:
    """The folders, then what their own `.pth` files add."""
    yield from inherited.sites
    for site in inherited.sites:
        for file in sorted(Path(site).glob("*.pth")):
            try:
                text = file.read_text(encoding="utf-8", errors="surrogateescape")
            except OSError:
                continue
            for line in text.splitlines():
                if kept := _kept_line(line.strip(), Path(site), without):
                    yield kept


def _kept_line(line: str, site: Path, without: Path | None) -> str | None:
    """A line of a `.pth` file, its path made absolute; None for one that leads into the repository."""
    if not line or line.startswith("#"):
        return None
    if not line.startswith(("import ", "import\t")):
        path = os.path.normpath(site / line)
        return None if without is not None and _is_within(path, without) else path
    module = re.match(r"import\s+([\w.]+)", line)
    finder = site / f"{module[1]}.py" if module else None
    if without is not None and finder is not None and "editable" in finder.name and finder.is_file():
        quoted = re.findall(r"['\"](/[^'\"]*)['\"]", finder.read_text(encoding="utf-8", errors="replace"))
        if any(_is_within(path, without) for path in quoted):
            return None
    return line


def _is_within(path: str, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _copy_scripts(source: Path, target: Path, inherited: InheritedPython, python: Path) -> None:
    """The programs of the inherited packages (pytest, torchrun), started with the new interpreter."""
    for script in sorted(source.iterdir()) if source.is_dir() else ():
        place = target / script.name
        if _OWN.fullmatch(script.name) or place.exists() or not script.is_file():
            continue
        with script.open("rb") as file:
            if file.read(2) != b"#!":
                continue
            head = file.readline()
            if b"python" not in head and not head.strip().endswith(b"/sh"):
                continue
            rest = file.read()
        text = b"#!" + head + rest
        changed = _retargeted(text, inherited, python)
        if changed != text:
            place.write_bytes(changed)
            place.chmod(0o755)


def _retargeted(script: bytes, inherited: InheritedPython, python: Path) -> bytes:
    """With the interpreter in its first three lines replaced."""
    old = re.escape(os.fsencode(os.path.join(inherited.prefix, "bin"))) + rb"/python[\d.]*"
    lines = script.split(b"\n", 3)
    return b"\n".join([*(re.sub(old, lambda _: os.fsencode(python), line) for line in lines[:3]), *lines[3:]])


def _provide_pip(folder: Path, python: Path) -> None:
    """`pip` that installs into this environment: the inherited module, else a new one."""
    try:
        call([str(python), "-c", "import pip"], Path("/"), within_s=QUICK_S)
    except CommandFailed:
        try:
            call([str(python), "-m", "ensurepip", "--default-pip"], Path("/"), within_s=10 * QUICK_S)
        except CommandFailed:
            return  # the build may not need it, and says so if it does
    for name in ("pip", "pip3"):
        script = folder / "bin" / name
        if not script.exists():
            script.write_text(f'#!/bin/sh\nexec "{python}" -m pip "$@"\n', encoding="utf-8")
            script.chmod(0o755)
