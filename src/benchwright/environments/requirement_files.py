"""Requirements files: what they require, where, and a digest that changes only if that does."""

from __future__ import annotations

import hashlib
import os
import re

import msgspec

from benchwright.core.errors import InvalidInput

_INCLUDE = re.compile(r"(?:-r|-c|--requirement|--constraint)(?:\s*=\s*|\s+|(?=[^-\s]))(.+)")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_COMMENT = re.compile(r"(^|\s)#.*$")
# A local path means something else for every copy of the file.
_LOCAL = re.compile(r"(?:-e\b|--editable\b|\.|/|file:)|.*@\s*file:")


class Mention(msgspec.Struct, frozen=True):
    """Where a package is required."""

    file: str
    line: int
    text: str


class Requirements(msgspec.Struct, frozen=True, kw_only=True):
    """One file, with those it includes. `packages`: normalised name → where it is mentioned first."""

    path: str
    digest: str
    packages: dict[str, Mention] = {}

    @property
    def is_empty(self) -> bool:
        """Nothing but comments."""
        return self.digest == _EMPTY


def read_requirements(path: str) -> Requirements:
    """Follows -r and -c; InvalidInput for a file that is missing or no text."""
    digest = hashlib.sha256()
    packages: dict[str, Mention] = {}
    _read(path, digest, packages, seen=set(), asked_by=None)
    return Requirements(path=path, digest=digest.hexdigest(), packages=packages)


def normalised(name: str) -> str:
    """How package names are compared: case and the kind of separator do not count."""
    return re.sub(r"[-_.]+", "-", name).lower()


def package_name(requirement: str) -> str | None:
    """`alpha[extra]>=2; python_version > '3'` → alpha; None for an option, a path or an address."""
    if _LOCAL.match(requirement) or "://" in requirement.partition("@")[0]:
        return None
    found = _NAME.match(requirement)
    return None if found is None else normalised(found[0])


def meaningful_lines(text: str) -> list[tuple[int, str]]:
    """Lines as pip sees them: without comments, continued ones joined; each with the number of its first line."""
    found: list[tuple[int, str]] = []
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).strip()
        if not pending:
            first = number
        continued = line.endswith("\\")
        pending += " " * bool(pending and line) + line.removesuffix("\\").strip()
        if not continued:
            if pending:
                found.append((first, pending))
            pending = ""
    if pending:
        found.append((first, pending))
    return found


_EMPTY = hashlib.sha256().hexdigest()


def _read(
    path: str, digest: hashlib._Hash, packages: dict[str, Mention], seen: set[str], asked_by: Mention | None
) -> None:
    real = os.path.realpath(path)
    if real in seen:
        return
    seen.add(real)
    for number, line in meaningful_lines(_text(path, asked_by)):
        mention = Mention(path, number, line)
        if (included := _INCLUDE.fullmatch(line)) is not None and "://" not in included[1]:
            _read(os.path.join(os.path.dirname(path), included[1].strip()), digest, packages, seen, mention)
            continue
        digest.update(line.encode() + b"\n")
        if _LOCAL.match(line):
            digest.update(os.path.dirname(real).encode() + b"\0")
        if (name := package_name(line)) is not None:
            packages.setdefault(name, mention)


def _text(path: str, asked_by: Mention | None) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        if asked_by is None:
            raise InvalidInput(f"cannot be read: {why}", where=path, remedy="check its name and permissions") from None
        raise InvalidInput(
            f"{path}: {why}", where=asked_by.file, line=asked_by.line, remedy="correct the name", text=asked_by.text
        ) from None
