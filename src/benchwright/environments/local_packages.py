"""Packages that lie as source in a folder: their wheels, made here from pyproject.toml.

Their own build tool is not needed: it would have to be downloaded, and they are plain Python.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tomllib
import zipfile
from io import BytesIO
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.whole_file import write_own
from benchwright.environments.requirement_files import normalised, package_name

_PROJECT = "pyproject.toml"
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)  # the same content gives the same wheel
_CARET = re.compile(r"\^\s*(\d+)(?:\.(\d+))?[\w.]*")


class LocalPackage(msgspec.Struct, frozen=True, kw_only=True):
    """`version` ends with a digest of the content, so that a changed package is a newer one. `files`: name → content."""

    name: str
    version: str
    requires: tuple[str, ...]
    scripts: dict[str, str]
    files: dict[str, bytes]
    digest: str

    @property
    def wheel_name(self) -> str:
        return f"{self._stem}-py3-none-any.whl"

    @property
    def _stem(self) -> str:
        return f"{self.name.replace('-', '_')}-{self.version}"

    def write_wheel(self, folder: str) -> str:
        """Its path; a wheel that is already there has the same content."""
        path = os.path.join(folder, self.wheel_name)
        if not os.path.exists(path):
            os.makedirs(folder, exist_ok=True)
            write_own(path, _zipped(self._contents()))
        return path

    def _contents(self) -> dict[str, bytes]:
        info = f"{self._stem}.dist-info"
        about = [f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}"]
        about += [f"Requires-Dist: {one}" for one in self.requires]
        wheel = "Wheel-Version: 1.0\nGenerator: benchwright\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        contents = {**self.files, f"{info}/METADATA": _lines(about), f"{info}/WHEEL": wheel.encode()}
        if self.scripts:
            entries = [f"{name} = {target}" for name, target in self.scripts.items()]
            contents[f"{info}/entry_points.txt"] = _lines(["[console_scripts]", *entries])
        record = [f"{name},sha256={_hash(body)},{len(body)}" for name, body in contents.items()]
        return {**contents, f"{info}/RECORD": _lines([*record, f"{info}/RECORD,,"])}


def read_local_package(folder: str) -> LocalPackage:
    """InvalidInput if its pyproject.toml does not say what it is, or the package is not beside it."""
    path, about = os.path.join(folder, _PROJECT), _project(folder)
    tools = about.get("tool", {})
    poetry, project = tools.get("poetry", {}), about.get("project", {})
    name = str(project.get("name") or poetry.get("name") or os.path.basename(folder))
    modules = tools.get("benchwright", {}).get("modules") or [name.replace("-", "_")]
    files = _files(folder, modules)
    if not files:
        raise InvalidInput(f"the package {modules[0]} is not beside it", where=path, remedy="copy the whole package")
    scripts = project.get("scripts") or poetry.get("scripts") or {}
    body = msgspec.json.encode([about, {name: hashlib.sha256(files[name]).hexdigest() for name in files}])
    digest = hashlib.sha256(body).hexdigest()[:12]
    return LocalPackage(
        name=normalised(name),
        version=f"{project.get('version') or poetry.get('version') or '0'}+local.{digest}",
        requires=_requirements(about),
        scripts={key: str(value) for key, value in scripts.items()},
        files=files,
        digest=digest,
    )


def required_packages(folder: str) -> tuple[str, ...]:
    """The names of what it requires; none where that cannot be read."""
    try:
        required = _requirements(_project(folder))
    except InvalidInput:
        return ()
    return tuple(name for one in required if (name := package_name(one)) is not None)


def _project(folder: str) -> dict[str, Any]:
    path = os.path.join(folder, _PROJECT)
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", where=path, remedy="copy the whole package") from None


def _requirements(about: dict[str, Any]) -> tuple[str, ...]:
    of_poetry = about.get("tool", {}).get("poetry", {}).get("dependencies", {})
    return tuple(about.get("project", {}).get("dependencies") or _poetry_requirements(of_poetry))


def _files(folder: str, modules: list[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for module in modules:
        top = os.path.join(folder, module)
        walked = os.walk(top) if os.path.isdir(top) else [(folder, [], [module])]
        for place, below, names in walked:
            below[:] = sorted(name for name in below if name != "__pycache__")
            for path in (os.path.join(place, name) for name in sorted(names) if not name.endswith(".pyc")):
                if os.path.isfile(path):
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, folder).replace(os.sep, "/")] = file.read()
    return found


def _poetry_requirements(given: dict[str, Any]) -> list[str]:
    """Poetry's versions as pip writes them: `^1.2` is at least that, and before 2."""
    required = []
    for name, version in given.items():
        wanted = version.get("version", "*") if isinstance(version, dict) else version
        if name == "python" or not isinstance(wanted, str) or (isinstance(version, dict) and version.get("optional")):
            continue
        if caret := _CARET.fullmatch(wanted):
            major, minor = int(caret[1]), int(caret[2] or 0)
            wanted = f">={wanted[1:].strip()},<{major + 1 if major else f'0.{minor + 1}'}"
        required.append(name + ("" if wanted == "*" else f"=={wanted}" if wanted[:1].isdigit() else wanted))
    return required


def _zipped(contents: dict[str, bytes]) -> bytes:
    body = BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name, _FIRST_TIME), content)
    return body.getvalue()


def _lines(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def _hash(body: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(body).digest()).rstrip(b"=").decode()
