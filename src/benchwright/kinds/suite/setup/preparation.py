"""Inputs of a prepare script, and the marks that finished preparations leave."""

from __future__ import annotations

import hashlib
import os
import re

import msgspec

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Script
from benchwright.core.stored_file import Unreadable, read_stored_json
from benchwright.core.whole_file import write_own
from benchwright.kinds.suite.dialect import claim
from benchwright.kinds.suite.folder_facts import BENCHFILE

_FOLDER = ".prepared"
_FORMAT = 1
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w.,\t ]+))", re.MULTILINE)
_MOST_BYTES = 1 << 20  # of one file; what is larger is data, not code


class Preparation(msgspec.Struct, frozen=True, kw_only=True):
    """One prepare script with the words it gets. The same `identity`: the same preparation, made once for both."""

    script: str
    args: tuple[str, ...]  # placeholders still in words: a machine with more cores needs no other data
    env: dict[str, str | None]
    identity: str
    obeyed: bool = False  # the script is a benchfile whose own way to prepare is followed


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A mark, written after the script has ended well. `made`: folder → what appeared at the top of it."""

    format: int = _FORMAT
    benchmark: str
    definition: str
    script: str
    args: tuple[str, ...]
    made: dict[str, tuple[str, ...]]
    finished: float
    seconds: float


def preparation_of(benchmark: Benchmark, known: dict[str, bytes] | None = None) -> Preparation | None:
    """None: it has nothing to prepare. `known` remembers the code of scripts between calls."""
    folder = benchmark.folder
    if folder is None:
        return None
    obeyed = claim(folder.path).facts.follows("prepare", folder.config)
    name = BENCHFILE if obeyed else folder.prepare_script
    script = os.path.join(folder.path, name) if name is not None else ""
    if not os.path.isfile(script):
        return None
    args = benchmark.workload.args if isinstance(benchmark.workload, Script) else ()
    digest = hashlib.sha256(msgspec.json.encode([_FORMAT, folder.path, name, args, benchmark.env]))
    known = {} if known is None else known
    if script not in known:
        known[script] = _digest_of_code(script, folder)
    digest.update(known[script])
    if obeyed and folder.prepare_script is not None:  # which it is likely to start
        digest.update(_digest_of_code(os.path.join(folder.path, folder.prepare_script), folder))
    identity = digest.hexdigest()[:16]
    return Preparation(script=script, args=args, env=benchmark.env, identity=identity, obeyed=obeyed)


class Marks:
    """Below the data folder: whoever removes the data removes the marks."""

    def __init__(self, data: str) -> None:
        self.folder = os.path.join(data, _FOLDER)

    @property
    def lock(self) -> str:
        return os.path.join(self.folder, "lock")

    def read(self, identity: str) -> Prepared | None:
        try:
            mark = read_stored_json(self._path(identity), Prepared)
        except (OSError, Unreadable):
            return None
        return mark if mark.format == _FORMAT else None

    def write(self, identity: str, mark: Prepared) -> None:
        write_own(self._path(identity), msgspec.json.encode(mark))

    def forget(self, identity: str) -> None:
        """Before a preparation begins: one that is cut off must not look finished."""
        try:
            os.unlink(self._path(identity))
        except FileNotFoundError:
            pass

    def made_for(self, definition: str) -> dict[str, set[str]]:
        """Files recorded as made by some preparation of a benchmark folder that still exist."""
        found: dict[str, set[str]] = {}
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(".json")]
        except OSError:
            return found
        for name in names:
            mark = self.read(name.removesuffix(".json"))
            if mark is not None and mark.definition == definition:
                for folder, made in mark.made.items():
                    there = {item for item in made if os.path.lexists(os.path.join(folder, item))}
                    found.setdefault(folder, set()).update(there)
        return found

    def _path(self, identity: str) -> str:
        return os.path.join(self.folder, f"{identity}.json")


def missing_data(mark: Prepared) -> str | None:
    """The first thing that was made and is gone."""
    paths = (os.path.join(folder, name) for folder, names in mark.made.items() for name in names)
    return next((path for path in paths if not os.path.lexists(path)), None)


def contents(folders: tuple[str, ...]) -> dict[str, dict[str, int]]:
    """The top-level entries of each folder, with their times of modification."""
    found: dict[str, dict[str, int]] = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                there = {e.name: e.stat(follow_symlinks=False).st_mtime_ns for e in entries if e.name[0] != "."}
        except OSError:
            there = {}
        found[folder] = there
    return found


def changes(before: dict[str, dict[str, int]], after: dict[str, dict[str, int]]) -> dict[str, set[str]]:
    """The entries that are new or were modified."""
    return {
        folder: {name for name, changed in there.items() if before.get(folder, {}).get(name) != changed}
        for folder, there in after.items()
    }


def _digest_of_code(script: str, folder: BenchmarkFolder) -> bytes:
    digest = hashlib.sha256()
    for path in _code_of(script, folder):
        digest.update(os.path.relpath(path, folder.path).encode() + b"\0" + _bytes(path))
    return digest.digest()


def _code_of(script: str, folder: BenchmarkFolder) -> list[str]:
    """The script and the modules of the benchmark's folder that it imports, directly or not."""
    found: list[str] = []
    todo = [script]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.append(path)
        if not path.endswith(".py"):
            continue
        for match in _IMPORT.finditer(_bytes(path)):
            for name in (match[1] or match[2]).decode().split(","):
                todo += _module_files(name.split()[0] if name.strip() else "", folder.path)
    return sorted(found)


def _module_files(name: str, definition: str) -> list[str]:
    """Of the dotted `name`, if it is found in the folder: the module, or all of the package."""
    top = name.partition(".")[0]
    if not top:
        return []
    module = os.path.join(definition, f"{top}.py")
    if os.path.isfile(module):
        return [module]
    package = os.path.join(definition, top)
    if not os.path.isfile(os.path.join(package, "__init__.py")):
        return []
    return [os.path.join(at, f) for at, _, files in os.walk(package) for f in files if f.endswith(".py")]


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return b""
