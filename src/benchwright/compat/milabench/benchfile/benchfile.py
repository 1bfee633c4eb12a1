"""The facts of a benchmark's folder that milabench keeps in benchfile.py: which requirements and scripts, whether voir runs it,
and which methods it overrides.

The file is read without running it wherever that is enough. One that computes its attributes is run, in a child process
(`child`). Methods it overrides are obeyed in the phase they belong to.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchwright.compat.milabench.benchfile.child import ask_benchfile
from benchwright.compat.milabench.benchfile.syntax import Overridden, Unclear, read_pack_class
from benchwright.core.benchmark import Runner
from benchwright.core.errors import InvalidInput
from benchwright.environments.local_packages import required_packages
from benchwright.kinds.suite.folder_facts import BENCHFILE, FolderFacts, Phase, says_how_to_run

VOIRFILE = "voirfile.py"
_MOST_SCANNED = 1 << 18
_IMPORTS_VOIR = re.compile(rb"^[ \t]*(?:import|from)[ \t]+voir\b", re.MULTILINE)
_IMPORTS_BENCHMATE = re.compile(rb"^[ \t]*(?:import|from)[ \t]+benchmate\b", re.MULTILINE)
_USES_BENCHRUN = re.compile(rb"\bTorch[rR]un\w+|\bbenchrun\b")  # commands that start it

IGNORED = "x-benchfile"  # an entry that says `attributes` here wants nothing but the attributes of its benchfile
ATTRIBUTES_ONLY = "attributes"
_ANY_PHASE = frozenset(("make_env", "full_env", "argv", "working_directory", "__init__", "copy"))
RUN_METHODS = _ANY_PHASE | {"build_run_plan", "run", "voir", "execute", "python", "main_script"}
PREPARE_METHODS = _ANY_PHASE | {"build_prepare_plan", "prepare", "prepare_script"}
INSTALL_METHODS = frozenset(("install", "checked_install", "build_install_plan", "pip_install", "conda_install")) | {
    *("base_requirements", "requirements_map", "requirements_files")
}
_METHODS = {"install": INSTALL_METHODS, "prepare": PREPARE_METHODS, "run": RUN_METHODS}
# Pinning does not change what is run, and `benchwright pin` does it its own way.
_NOTED_ONLY = frozenset(("pin", "build_pin_plan", "exec_pip_compile"))
HOOKS = RUN_METHODS | PREPARE_METHODS | INSTALL_METHODS | _NOTED_ONLY


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a file that keeps the benchmark from being run."""

    what: str
    where: str
    remedy: str
    line: int | None = None
    column: int | None = None
    text: str | None = None
    of_plan: bool = False  # an entry that says itself how to run is not affected

    def error(self) -> InvalidInput:
        return InvalidInput(
            self.what, where=self.where, line=self.line, column=self.column, remedy=self.remedy, text=self.text
        )


class BenchFacts(FolderFacts, frozen=True, kw_only=True):
    """Also of a folder without a benchfile.py whose scripts use voir or benchmate."""

    overridden: tuple[Overridden, ...] = ()
    has_benchfile: bool = False
    has_voirfile: bool = False
    imports_voir: bool = False
    benchmate: str | None = None  # the folder that holds the package, if the folder's scripts import it
    trouble: Trouble | None = None

    @property
    def overrides(self) -> tuple[str, ...]:
        """Names of the methods that benchfile.py overrides and that are not used here."""
        return tuple(one.name for one in self.overridden)

    @property
    def uses_voir(self) -> bool:
        return self.has_voirfile or self.imports_voir

    @property
    def is_ours(self) -> bool:
        """Whether there is anything of milabench, voir or benchmate in the folder."""
        return self.has_benchfile or self.uses_voir or self.benchmate is not None or self.trouble is not None

    @property
    def packages(self) -> tuple[str, ...]:
        benchmate = required_packages(self.benchmate) if self.benchmate is not None else ()
        voir = self.uses_voir or self.benchmate is not None
        return tuple(dict.fromkeys((*(("voir",) if voir else ()), *benchmate)))

    @property
    def local_packages(self) -> tuple[str, ...]:
        return (self.benchmate,) if self.benchmate is not None else ()

    def runner(self, entry: Mapping[str, Any]) -> Runner | None:
        """benchmate hands its figures to voir; a benchfile with its own plan says itself what voir runs."""
        if entry.get("command"):
            return None
        if not (self.uses_voir or (self.benchmate is not None and self.has_usual_plan(entry))):
            return None
        return Runner(name="voir", dialect="milabench", settings=entry.get("voir") or {})

    def follows(self, phase: Phase, entry: Mapping[str, Any]) -> bool:
        """Whether it overrides a method of the phase, and the entry does not say what to do instead."""
        replaced = {"run": says_how_to_run(entry), "prepare": "prepare" in entry, "install": False}[phase]
        overrides = not _METHODS[phase].isdisjoint(self.overrides)
        return overrides and not replaced and entry.get(IGNORED) != ATTRIBUTES_ONLY

    def has_usual_plan(self, entry: Mapping[str, Any]) -> bool:
        """Whether the run is the one that every benchfile inherits: in the main script's folder, on the main machine only."""
        own = entry.get(IGNORED) == ATTRIBUTES_ONLY or says_how_to_run(entry) or bool(entry.get("server"))
        return self.has_benchfile and not own and RUN_METHODS.isdisjoint(self.overrides)

    def refusal(self, entry: Mapping[str, object] = {}) -> InvalidInput | None:
        """Why the folder cannot be run as it is, or None."""
        if self.trouble is None or (self.trouble.of_plan and says_how_to_run(entry)):
            return None
        unused = entry.get(IGNORED) == ATTRIBUTES_ONLY
        return None if unused and self.trouble.where == os.path.join(self.folder, BENCHFILE) else self.trouble.error()


def read_benchfile(folder: str | os.PathLike[str]) -> BenchFacts:
    """Facts about the folder; defaults where it has no benchfile.py, or does not exist yet. Never raises for its content."""
    place = os.path.abspath(folder)
    return _read(
        place, tuple(_stamp(os.path.join(place, name)) for name in (BENCHFILE, VOIRFILE, "main.py", "prepare.py"))
    )


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


@functools.lru_cache(maxsize=4096)
def _read(folder: str, stamps: tuple[tuple[int, int] | None, ...]) -> BenchFacts:
    facts = BenchFacts(folder=folder)
    if stamps[0] is not None:
        facts = _with_benchfile(msgspec.structs.replace(facts, has_benchfile=True))
    if not os.path.isdir(folder):
        return facts
    if facts.prepare_script is not None and not os.path.exists(os.path.join(folder, facts.prepare_script)):
        facts = msgspec.structs.replace(facts, prepare_script=None)
    return _with_scripts(facts)


def _with_benchfile(facts: BenchFacts) -> BenchFacts:
    path = os.path.join(facts.folder, BENCHFILE)
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read(), filename=path)
    except SyntaxError as error:
        return _troubled(facts, f"this is not Python: {error.msg}", error.lineno, text=error.text)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return _troubled(facts, f"cannot be read: {getattr(error, 'strerror', None) or error}", None)
    try:
        found = read_pack_class(tree)
    except LookupError as error:
        return _troubled(facts, str(error.args[0]), None)
    except Unclear:
        return _run(facts, path)
    except RecursionError:
        return _troubled(facts, "it is nested too deeply", None)
    overridden = tuple(one for one in found.overridden if one.name in HOOKS)
    if {"base_requirements", "requirements_file", "prepare_script", "main_script"} & set(found.unclear):
        facts = _run(facts, path)
    else:
        facts = _with_attributes(facts, found.attributes)
    return _with_overrides(facts, overridden)


def _run(facts: BenchFacts, path: str) -> BenchFacts:
    """Attributes, and methods, of a benchfile that has to be run to be known."""
    try:
        answer = ask_benchfile(path, "about", {})
    except InvalidInput as error:
        return _troubled(facts, error.what, error.line)
    methods = [(name, line or 1) for name, line in answer["methods"].items() if name in HOOKS]
    return _with_overrides(
        _with_attributes(facts, answer["attributes"]), tuple(Overridden(name=name, line=line) for name, line in methods)
    )


def _with_attributes(facts: BenchFacts, attributes: Mapping[str, object]) -> BenchFacts:
    """`requirements_file` is what base_requirements was called in 2022."""
    change: dict[str, object] = {}
    required = attributes.get("base_requirements", attributes.get("requirements_file", "requirements.in"))
    names = [required] if isinstance(required, str) else (required or [])
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        change["requirements"] = tuple(name for name in names if name)
    for name in ("prepare_script", "main_script"):
        if name in attributes and isinstance(attributes[name], str | None):
            change[name] = attributes[name] or None
    if change.get("main_script", "") is None:
        del change["main_script"]
    return msgspec.structs.replace(facts, **change)


def _with_overrides(facts: BenchFacts, overridden: tuple[Overridden, ...]) -> BenchFacts:
    known = {one.name for one in overridden}
    merged = overridden + tuple(one for one in facts.overridden if one.name not in known)
    noted = [one for one in merged if one.name in _NOTED_ONLY]
    notes = [f"{BENCHFILE}:{one.line}: '{one.name}' is ignored: benchwright pin does this itself" for one in noted]
    return msgspec.structs.replace(facts, overridden=merged, notes=tuple(dict.fromkeys((*facts.notes, *notes))))


def _with_scripts(facts: BenchFacts) -> BenchFacts:
    """Adds what the scripts of the folder import."""
    folder = Path(facts.folder)
    main = folder / facts.main_script
    scanned = {path: _beginning(path) for path in dict.fromkeys([*_scripts(main), *_scripts(folder)])}
    facts = msgspec.structs.replace(
        facts,
        has_voirfile=(folder / VOIRFILE) in scanned,
        imports_voir=any(_IMPORTS_VOIR.search(scanned[path]) for path in _scripts(main)),
    )
    for path, text in scanned.items():
        use = _USES_BENCHRUN if path.name == BENCHFILE else _IMPORTS_BENCHMATE
        if (found := _needed(use, text)) is not None:
            return _with_benchmate(facts, path, text.count(b"\n", 0, found.start()) + 1)
    return facts


def _scripts(place: Path) -> list[Path]:
    """The script itself, or those of a folder."""
    if not place.is_dir():
        return [place] if place.is_file() else []
    try:
        return sorted(path for path in place.iterdir() if path.suffix == ".py")[:100]
    except OSError:
        return []


def _with_benchmate(facts: BenchFacts, script: Path, line: int) -> BenchFacts:
    """The package beside `benchmarks/`; trouble if there is none. Where requirements name it, it is the user's own business.
    The folder may be one level deeper, as in `benchmarks/retired`."""
    if any(b"benchmate" in _beginning(Path(facts.folder) / name) for name in facts.requirements):
        return facts
    sought = [above / "benchmate" for above in Path(facts.folder).resolve().parents[1:3]]
    for own in sought:
        if (own / "benchmate" / "__init__.py").is_file():
            return msgspec.structs.replace(facts, benchmate=str(own))
    trouble = Trouble(
        what=f"it uses benchmate, which is neither in {' nor in '.join(map(str, sought))}",
        where=str(script),
        line=line,
        of_plan=script.name == BENCHFILE,
        remedy=f"copy the folder benchmate of milabench's repository to {sought[0]}, or name benchmate in requirements.in",
    )
    return facts if facts.trouble is not None else msgspec.structs.replace(facts, trouble=trouble)


def _needed(use: re.Pattern[bytes], text: bytes) -> re.Match[bytes] | None:
    """The first place where it is used; not an import that a script tries."""
    found = use.finditer(text)
    return next((match for match in found if not text[: match.start()].rstrip().endswith(b"try:")), None)


def _beginning(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_SCANNED)
    except OSError:
        return b""


def _troubled(facts: BenchFacts, what: str, line: int | None, text: str | None = None) -> BenchFacts:
    remedy = f"fix it, or write `main:`, `prepare:` and `{IGNORED}: {ATTRIBUTES_ONLY}` in the suite's entry"
    where = os.path.join(facts.folder, BENCHFILE)
    return msgspec.structs.replace(facts, trouble=Trouble(what=what, where=where, line=line, remedy=remedy, text=text))
