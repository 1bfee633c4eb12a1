"""Tiny packages made by hand, so that installing needs no network."""

from __future__ import annotations

import base64
import hashlib
import os
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from importlib import metadata
from io import BytesIO
from pathlib import Path

from packaging.requirements import Requirement

_BROKEN = "raise RuntimeError('no compiler found')"


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    requires: Sequence[str] = (),
    *,
    module: str | None = None,
    more: Mapping[str, str] | None = None,
) -> Path:
    """A wheel of one module that knows its version; with `more` files, it is a package."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}/__init__.py" if more else f"{name}.py": module or f"__version__ = {version!r}\n",
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {r}\n" for r in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **(more or {}),
    }
    record = "".join(f"{path},sha256={_hash(text)},{len(text.encode())}\n" for path, text in files.items())
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            archive.writestr(path, text)
    return wheel


def make_source(folder: Path, name: str, version: str, statement: str = _BROKEN) -> Path:
    """A source package whose build executes `statement`, and fails if that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    project = f'[project]\nname = "{name}"\nversion = "{version}"\n'
    project += '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": project,
        "backend.py": f"def build_wheel(*_, **__):\n    {statement}\n",
    }
    path = folder / f"{name}-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{file}")
            entry.size = len(text.encode())
            archive.addfile(entry, BytesIO(text.encode()))
    return path


def make_packages(folder: Path) -> None:
    """alpha 1 and 2; beta needs alpha 1, gamma alpha 2; delta needs what is nowhere; broken cannot be built; voir."""
    make_wheel(folder, "alpha", "1.0")
    make_wheel(folder, "alpha", "2.0")
    make_wheel(folder, "beta", "1.0", ["alpha<2"])
    make_wheel(folder, "gamma", "1.0", ["alpha>=2"])
    make_wheel(folder, "delta", "1.0", ["nowhere>=1"])
    make_wheel(folder, "voir", "0.2.24")
    make_source(folder, "broken", "1.0")


def repack(folder: Path, name: str, known: set[str] | None = None) -> None:
    """The wheels of an installed package and of all that it requires, made from their installed files."""
    known = set() if known is None else known
    if name in known:
        return
    known.add(name)
    found = metadata.distribution(name)
    for required in map(Requirement, found.requires or ()):
        if required.marker is None or required.marker.evaluate({"extra": ""}):
            repack(folder, required.name, known)
    tags = [line for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
    stem = f"{found.metadata['Name'].replace('-', '_')}-{found.version}"
    path = folder / f"{stem}-{tags[0].removeprefix('Tag: ')}.whl"
    files = [file for file in found.files or () if ".." not in file.parts and file.suffix != ".pyc"]
    with zipfile.ZipFile(path, "w") as archive:
        for file in files:
            archive.write(str(file.locate()), str(file))


def make_index(folder: Path, wheels: Sequence[Path]) -> str:
    """A simple index of these files as folders of pages; returns its address."""
    pages: dict[str, list[str]] = {}
    for wheel in wheels:
        name = wheel.name.partition("-")[0]
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        content = wheel.read_bytes()
        (place / wheel.name).write_bytes(content)
        link = f'<a href="{wheel.name}#sha256={hashlib.sha256(content).hexdigest()}">{wheel.name}</a>'
        pages.setdefault(name, []).append(link)
    for name, links in pages.items():
        (folder / name / "index.html").write_text("<!DOCTYPE html>\n" + "\n".join(links))
    (folder / "index.html").write_text("\n".join(f'<a href="{name}/">{name}</a>' for name in pages))
    return folder.as_uri()


def offline(links: Path, cache: Path) -> dict[str, str]:
    """Variables for installers: only the packages in `links`, nothing of this machine's configuration."""
    return {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
        "UV_CACHE_DIR": str(cache),
        "UV_NO_CONFIG": "1",
    }


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
