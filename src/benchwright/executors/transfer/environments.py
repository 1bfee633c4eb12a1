"""A virtual environment as another machine can use it: at another path, with that machine's own Python.

Its packages are sent as they are. What names the old path is rewritten: the first lines of scripts, `pyvenv.cfg`, the link to
the interpreter, and `.pth` files.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.executors.transfer.manifest import Manifest, read_manifest
from benchwright.executors.transfer.relocation import Relocation
from benchwright.executors.transfer.shell import Shell
from benchwright.executors.transfer.survey import Survey

_LONGEST_SCRIPT = 1 << 20
_QUOTED_PATH = re.compile(r"""['"](/[^'"\n]+)['"]""")


class NoPython(CannotMeasure):
    """A machine has no Python that will do; plain programs may still run there."""


def python_there(version: str, what: str, shell: Shell, found: Survey) -> str:
    """The interpreter there for something that was made with this version; CannotMeasure if there is none that will do."""
    here = os.uname().machine
    if found.machine.architecture != here:
        raise NoPython(
            f"{shell}: {what} is for {here}, and it is {found.machine.architecture}; use nodes of the same architecture"
        )
    if platform.libc_ver()[0] == "glibc" and found.libc is None:
        raise NoPython(f"{shell}: {what} needs glibc, and it has another C library; use a node with glibc")
    if version not in found.pythons:
        others = f"only {', '.join(found.pythons)}" if found.pythons else "none"
        raise NoPython(f"{shell}: {what} needs Python {version}, and it has {others}; install Python {version} there")
    return found.pythons[version]


def version_of(environment: str) -> str:
    """The Python of a virtual environment, such as `3.11`."""
    try:
        names = sorted(os.listdir(os.path.join(environment, "lib")))
    except OSError:
        names = []
    for name in names:
        if match := re.fullmatch(r"python(\d+\.\d+)", name):
            return match[1]
    raise CannotMeasure(f"{environment}: its Python version is unknown; recreate the environment")


def folders_named_in(environment: str) -> list[str]:
    """Folders outside that its packages are loaded from: editable installs."""
    found: dict[str, None] = {}
    for path in _rewritable(environment):
        if path.startswith("bin/") or path == "pyvenv.cfg":
            continue
        text = _read(os.path.join(environment, path)) or ""
        named = [*_QUOTED_PATH.findall(text), *(line.strip() for line in text.splitlines() if line.startswith("/"))]
        for folder in named:
            if os.path.isdir(folder) and not folder.startswith(environment + "/"):
                found[os.path.normpath(folder)] = None
    return list(found)


def environment_manifest(
    environment: str, places: Mapping[str, str], python: str, digests: str | None
) -> tuple[Manifest, list[str]]:
    """The environment as it is to lie at `places[environment]`, and notes. `python`: the interpreter there."""
    relocation = Relocation(places)
    replaced: dict[str, bytes] = {}
    for path in _rewritable(environment):
        text = _read(os.path.join(environment, path))
        if text is None:
            continue
        new = relocation.there(text)
        if path == "pyvenv.cfg":
            new = re.sub(r"(?m)^home *=.*$", lambda _: f"home = {os.path.dirname(python)}", new)
            new = re.sub(r"(?m)^(base-)?executable *=.*$", lambda _: f"executable = {python}", new)
        if new != text:
            replaced[path] = new.encode(errors="surrogateescape")
    manifest = read_manifest(environment, digests, keeps_link=_is_interpreter, replaced=replaced, skipped=())
    entries = tuple(
        msgspec.structs.replace(entry, target=python)
        if entry.kind == "link" and os.path.isabs(entry.target) and _is_interpreter(entry.path, entry.target)
        else entry
        for entry in manifest.entries
    )
    return Manifest(manifest.root, entries, manifest.notes), _doubts(environment)


def _doubts(environment: str) -> list[str]:
    if not os.path.islink(os.path.join(environment, "bin", "python")):
        return [f"{environment} has a copy of its interpreter, which may need libraries that the node lacks"]
    return []


def _is_interpreter(name: str, target: str) -> bool:
    return name.startswith("bin/python")


def _rewritable(environment: str) -> list[str]:
    """Files that may name paths of this machine, relative to the environment."""
    found = ["pyvenv.cfg"]
    for folder, wanted in (
        ("bin", r"(?!python)[^.].*"),
        (f"lib/python{version_of(environment)}/site-packages", r".*\.pth|__editable__.*\.py"),
    ):
        try:
            names = sorted(os.listdir(os.path.join(environment, folder)))
        except OSError:
            continue
        found += [f"{folder}/{name}" for name in names if re.fullmatch(wanted, name)]
    return found


def _read(path: str) -> str | None:
    """None for what is not a short text."""
    try:
        if os.path.islink(path) or os.path.getsize(path) > _LONGEST_SCRIPT:
            return None
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    return None if b"\0" in data else data.decode(errors="surrogateescape")
