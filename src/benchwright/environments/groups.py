"""Install groups: benchmarks of a suite that share an environment, and what it is made from."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterable, Sequence

import msgspec

from benchwright.core.benchmark import UNPINNED, Benchmark, Environment
from benchwright.core.errors import InvalidInput
from benchwright.environments.local_packages import LocalPackage, read_local_package
from benchwright.environments.requirement_files import Requirements, meaningful_lines, read_requirements

_FORMAT = 1
_NEWER = ("own_steps", "local_packages")  # fields of a recipe that do not count while they are empty
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Ingredients of an environment; two with the same `identity` are the same environment.

    `requirements` are digests of requirements files. What installs them, and out of which index, does not count.
    """

    requirements: tuple[str, ...]
    added: tuple[str, ...] = ()  # packages that no file requires
    constraints: tuple[str, ...] = ()  # lines, and digests of files
    pip_args: tuple[str, ...] = ()
    python: str = ""
    machine: str = ""
    own_steps: tuple[str, ...] = ()  # digests
    local_packages: tuple[str, ...] = ()  # digests

    @property
    def identity(self) -> str:
        known = {name: value for name, value in msgspec.to_builtins(self).items() if value or name not in _NEWER}
        body = msgspec.json.encode([_FORMAT, known])
        return hashlib.sha256(body).hexdigest()[:12]


class InstallGroup(msgspec.Struct, frozen=True, kw_only=True):
    """An environment to build. `files` and `constraint_files` are absolute paths."""

    name: str
    variant: str
    variant_given: bool = False  # by the command line
    files: tuple[Requirements, ...]
    recipe: Recipe
    constraint_files: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    python: str | None = None  # a path or a version; None: the interpreter benchwright runs with
    folder: str  # where the installer runs: relative paths in requirements start here
    users: dict[str, tuple[str, ...]] = {}  # requirements file → the benchmarks that use it
    notes: tuple[str, ...] = ()
    also: frozenset[str] = frozenset()  # digests of members that may be in it but need not
    own_steps: tuple[Benchmark, ...] = ()  # those with a file that says itself what else to install, one for each file
    local_packages: tuple[LocalPackage, ...] = ()


def groups_of(
    benchmarks: Sequence[Benchmark],
    *,
    arch: str,
    variant: str | None = None,
    constraint_files: Sequence[str] = (),
    others: Iterable[Benchmark] = (),
) -> list[InstallGroup]:
    """One group for each install_group of `benchmarks`; `variant` instead of what the entries say.

    InvalidInput where members cannot share an environment, or requirements are not pinned for the variant.
    `others`: benchmarks of the same groups that an environment may hold too.
    """
    members: dict[str, list[Benchmark]] = {}
    for benchmark in benchmarks:
        if benchmark.environment is not None:
            members.setdefault(_checked(benchmark.environment.name), []).append(benchmark)
    also: dict[str, set[str]] = {name: set() for name in members}
    for benchmark in others:
        if (environment := benchmark.environment) is not None and environment.name in members:
            also[environment.name] |= digests_if_readable(environment, arch, variant)
    return [
        _group(name, found, arch=arch, variant=variant, constraint_files=constraint_files, also=frozenset(also[name]))
        for name, found in members.items()
    ]


def variant_of(environment: Environment, arch: str) -> str:
    return environment.variant or arch


def requirement_paths(environment: Environment, variant: str) -> list[str]:
    """The files to install from; InvalidInput if one is not pinned for `variant`."""
    paths = []
    for name in environment.requirements:
        loose = os.path.join(environment.folder, name)
        pinned = os.path.join(environment.folder, pinned_name(name, variant))
        if variant != UNPINNED and os.path.isfile(pinned):
            paths.append(pinned)
        elif os.path.isfile(loose):
            if variant != UNPINNED and pinned != loose and not read_requirements(loose).is_empty:
                raise InvalidInput(
                    f"is not pinned for '{variant}': there is no {os.path.basename(pinned)}",
                    where=loose,
                    remedy=f"run `benchwright pin SUITE --select {environment.name} --variant {variant}`, "
                    f"or write install_variant: {UNPINNED}",
                )
            paths.append(loose)
    return paths


def pinned_name(name: str, variant: str) -> str:
    """requirements.in → requirements.<variant>.txt; a file with another ending is its own pin."""
    return f"{name.removesuffix('.in')}.{variant}.txt" if name.endswith(".in") and variant != UNPINNED else name


def _group(
    name: str,
    benchmarks: Sequence[Benchmark],
    *,
    arch: str,
    variant: str | None,
    constraint_files: Sequence[str],
    also: frozenset[str],
) -> InstallGroup:
    environments = [b.environment for b in benchmarks if b.environment is not None]
    chosen = variant or _same(name, "install_variant", benchmarks, [variant_of(e, arch) for e in environments]) or arch
    python = _same(name, "venv.python", benchmarks, [e.python for e in environments])
    users: dict[str, list[str]] = {}
    for benchmark, environment in zip(benchmarks, environments, strict=True):
        for path in requirement_paths(environment, chosen):
            users.setdefault(path, []).append(benchmark.name)
    files = tuple(read_requirements(path) for path in users)
    added, notes = _added(benchmarks, files)
    constraints = tuple(dict.fromkeys(line for e in environments for line in e.constraints))
    own_steps = {b.environment.own_steps: b for b in benchmarks if b.environment and b.environment.own_steps}
    local = _local_packages(name, benchmarks)
    return InstallGroup(
        name=name,
        variant=chosen,
        variant_given=variant is not None,
        files=tuple(file for file in files if not file.is_empty),
        recipe=Recipe(
            requirements=tuple(sorted({file.digest for file in files if not file.is_empty})),
            added=added,
            constraints=(*constraints, *_constraint_digests(constraint_files)),
            pip_args=tuple(dict.fromkeys(word for e in environments for word in e.pip_args)),
            python=python or sys.implementation.cache_tag,
            machine=os.uname().machine,
            own_steps=tuple(sorted(_digest(path) for path in own_steps)),
            local_packages=tuple(sorted(package.digest for package in local)),
        ),
        constraint_files=tuple(constraint_files),
        constraints=constraints,
        python=python,
        folder=environments[0].folder,
        users={path: tuple(names) for path, names in users.items()},
        notes=notes,
        also=also,
        own_steps=tuple(own_steps.values()),
        local_packages=local,
    )


def _local_packages(group: str, benchmarks: Sequence[Benchmark]) -> tuple[LocalPackage, ...]:
    """InvalidInput where two benchmarks bring different packages of the same name."""
    found: dict[str, tuple[Benchmark, LocalPackage]] = {}
    for benchmark in benchmarks:
        for folder in benchmark.environment.local_packages if benchmark.environment is not None else ():
            package = read_local_package(folder)
            other, same = found.setdefault(package.name, (benchmark, package))
            _same(group, package.name, [other, benchmark], [same.version, package.version])
    return tuple(package for _, package in found.values())


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]


def _constraint_digests(paths: Sequence[str]) -> list[str]:
    read = [read_requirements(path) for path in paths]
    return [file.digest for file in read if not file.is_empty]


def _added(benchmarks: Sequence[Benchmark], files: Sequence[Requirements]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Packages that benchmarks need and no requirements file names; and a note about each."""
    needing: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        for package in benchmark.environment.packages if benchmark.environment is not None else ():
            if not any(package in file.packages for file in files):
                needing.setdefault(package, []).append(benchmark.name)
    return tuple(needing), tuple(f"{listed(names)}: requirements lack {p}; adding it" for p, names in needing.items())


def listed(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _same(group: str, key: str, benchmarks: Sequence[Benchmark], values: Sequence[str | None]) -> str | None:
    """The one value all members have; InvalidInput names two that disagree."""
    for benchmark, value in zip(benchmarks, values, strict=True):
        if value != values[0]:
            raise InvalidInput(
                f"{benchmarks[0].name} ({key}: {values[0]}) and {benchmark.name} ({key}: {value}) "
                f"cannot share the environment '{group}'",
                where=benchmark.source,
                remedy="give them the same value, or different install groups",
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


def digests_if_readable(environment: Environment, arch: str, variant: str | None) -> set[str]:
    """For a member that is not installed: its faults do not matter."""
    try:
        paths = requirement_paths(environment, variant or variant_of(environment, arch))
        return {read_requirements(path).digest for path in paths}
    except InvalidInput:
        return set()


def constraint_text(lines: Iterable[str]) -> str:
    """Constraint lines of suite entries as a file."""
    return "".join(line + "\n" for line in lines if meaningful_lines(line))
