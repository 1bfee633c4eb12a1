"""Install groups: the benchmarks of a suite that share one environment, and what that environment is made from."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.benchmark_folder import UNPINNED, BenchmarkFolder
from benchwright.core.errors import InvalidInput
from benchwright.environments.requirement_files import Requirements, meaningful_lines, read_requirements

_FORMAT = 1
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What an environment is made from; two with the same `identity` are the same environment.

    `requirements` are digests of requirements files. What installs them, and out of which index, does not count.
    """

    requirements: tuple[str, ...]
    added: tuple[str, ...] = ()  # packages no file asks for
    constraints: tuple[str, ...] = ()  # lines, and digests of files
    pip_args: tuple[str, ...] = ()
    python: str = ""
    machine: str = ""

    @property
    def identity(self) -> str:
        body = msgspec.json.encode([_FORMAT, msgspec.to_builtins(self)])
        return hashlib.sha256(body).hexdigest()[:12]


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One environment to be. `files` and `constraint_files` are absolute paths."""

    name: str
    variant: str
    variant_given: bool = False  # by the command line
    files: tuple[Requirements, ...]
    recipe: Recipe
    constraint_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    python: str | None = None  # a path or a version; None: the interpreter benchwright runs with
    folder: str  # where the installer runs: relative paths in requirements are meant from here
    users: dict[str, tuple[str, ...]] = {}  # requirements file → the benchmarks that bring it
    notes: tuple[str, ...] = ()
    also: frozenset[str] = frozenset()  # digests of members that need not be there, but may


def groups_of(
    benchmarks: Sequence[Benchmark],
    *,
    arch: str,
    variant: str | None = None,
    constraint_files: Sequence[str] = (),
    others: Iterable[Benchmark] = (),
) -> list[Group]:
    """One group for each install_group of `benchmarks`; `variant` instead of what the entries say.

    InvalidInput where members cannot share an environment, or requirements are not pinned for the variant.
    `others`: benchmarks of the same groups that an environment may hold too.
    """
    members: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        if benchmark.folder is not None:
            members.setdefault(_checked(benchmark.folder.install_group), []).append(benchmark)
    also: dict[str, set[str]] = {name: set() for name in members}
    for benchmark in others:
        if benchmark.folder is not None and benchmark.folder.install_group in members:
            also[benchmark.folder.install_group] |= _digests_if_readable(benchmark.folder, arch, variant)
    return [
        _group(name, found, arch=arch, variant=variant, constraint_files=constraint_files, also=frozenset(also[name]))
        for name, found in members.items()
    ]


def variant_of(folder: BenchmarkFolder, arch: str) -> str:
    return folder.variant or arch


def requirement_paths(folder: BenchmarkFolder, variant: str) -> list[str]:
    """The files to install from; InvalidInput if one is not pinned for `variant`."""
    paths = []
    for name in folder.requirements:
        loose = os.path.join(folder.path, name)
        pinned = os.path.join(folder.path, pinned_name(name, variant))
        if variant != UNPINNED and os.path.isfile(pinned):
            paths.append(pinned)
        elif os.path.isfile(loose):
            if variant != UNPINNED and pinned != loose and not read_requirements(loose).is_empty:
                raise InvalidInput(
                    f"is not pinned for '{variant}': there is no {os.path.basename(pinned)}",
                    where=loose,
                    remedy=f"run `benchwright pin SUITE --select {folder.install_group} --variant {variant}`, "
                    f"or write install_variant: {UNPINNED}",
                )
            paths.append(loose)
    return paths


def pinned_name(name: str, variant: str) -> str:
    """requirements.in → requirements.<variant>.txt; a file that is no .in is its own pin."""
    return f"{name.removesuffix('.in')}.{variant}.txt" if name.endswith(".in") and variant != UNPINNED else name


def python_of(folder: BenchmarkFolder) -> str | None:
    """What the entry's `venv: {python: …}` asks for; a relative path is meant from the benchmark's folder."""
    venv = folder.config.get("venv")
    given = venv.get("python") if isinstance(venv, dict) else None
    if given is None:
        return None
    text = os.path.expanduser(str(given))
    return os.path.join(folder.path, text) if os.sep in text else text


def uses_voir(folder: BenchmarkFolder) -> bool:
    return folder.voir is not None or os.path.exists(os.path.join(folder.path, "voirfile.py"))


def _group(
    name: str,
    benchmarks: Sequence[Benchmark],
    *,
    arch: str,
    variant: str | None,
    constraint_files: Sequence[str],
    also: frozenset[str],
) -> Group:
    folders = [b.folder for b in benchmarks if b.folder is not None]
    chosen = variant or _same(name, "install_variant", benchmarks, [variant_of(p, arch) for p in folders]) or arch
    python = _same(name, "venv.python", benchmarks, [python_of(p) for p in folders])
    users: dict[str, list[str]] = {}
    for benchmark, folder in zip(benchmarks, folders, strict=True):
        for path in requirement_paths(folder, chosen):
            users.setdefault(path, []).append(benchmark.name)
    files = tuple(read_requirements(path) for path in users)
    added, notes = _added(benchmarks, files)
    constraints = tuple(dict.fromkeys(line for folder in folders for line in folder.constraints))
    return Group(
        name=name,
        variant=chosen,
        variant_given=variant is not None,
        files=tuple(file for file in files if not file.is_empty),
        recipe=Recipe(
            requirements=tuple(sorted({file.digest for file in files if not file.is_empty})),
            added=added,
            constraints=(*constraints, *_constraint_digests(constraint_files)),
            pip_args=tuple(dict.fromkeys(word for folder in folders for word in folder.pip_args)),
            python=python or sys.implementation.cache_tag,
            machine=os.uname().machine,
        ),
        constraint_files=tuple(constraint_files),
        constraints=constraints,
        python=python,
        folder=folders[0].path,
        users={path: tuple(names) for path, names in users.items()},
        notes=notes,
        also=also,
    )


def _constraint_digests(paths: Sequence[str]) -> list[str]:
    read = [read_requirements(path) for path in paths]
    return [file.digest for file in read if not file.is_empty]


def _added(benchmarks: Sequence[Benchmark], files: Sequence[Requirements]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """voir for folders that are instrumented with it but do not ask for it; and what to tell about that."""
    if any("voir" in file.packages for file in files):
        return (), ()
    using = [b.name for b in benchmarks if b.folder is not None and uses_voir(b.folder)]
    if not using:
        return (), ()
    shown = ", ".join(using[:3]) + (f" and {len(using) - 3} more" if len(using) > 3 else "")
    return ("voir",), (f"{shown}: a voirfile.py, but no voir in the requirements; voir is added",)


def _same(group: str, key: str, benchmarks: Sequence[Benchmark], values: Sequence[str | None]) -> str | None:
    """The one value all members have; InvalidInput names two that disagree."""
    for benchmark, value in zip(benchmarks, values, strict=True):
        if value != values[0]:
            raise InvalidInput(
                f"{benchmarks[0].name} ({key}: {values[0]}) and {benchmark.name} ({key}: {value}) "
                f"cannot share the environment '{group}'",
                where=benchmark.source,
                remedy="give them the same, or another install_group",
            )
    return values[0]


def _checked(name: str) -> str:
    if _SAFE_NAME.fullmatch(name) is None:
        raise InvalidInput(
            f"'{name}' cannot be the name of a folder",
            where="install_group",
            remedy="use letters, digits and . _ + - and begin with a letter or digit",
        )
    return name


def _digests_if_readable(folder: BenchmarkFolder, arch: str, variant: str | None) -> set[str]:
    """Of a member that is not to be installed, so what is wrong with it is no matter."""
    try:
        paths = requirement_paths(folder, variant or variant_of(folder, arch))
        return {read_requirements(path).digest for path in paths}
    except InvalidInput:
        return set()


def constraint_text(lines: Iterable[str]) -> str:
    """Constraint lines of suite entries as a file."""
    return "".join(line + "\n" for line in lines if meaningful_lines(line))
