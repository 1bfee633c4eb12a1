"""`pin`: exact versions for the requirements of a suite, group by group."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import UNPINNED, Benchmark, Environment
from benchwright.core.errors import Interrupted, InvalidInput
from benchwright.environments.groups import pinned_name
from benchwright.environments.installers import choose_installer
from benchwright.environments.pins import CannotPin, PinGroup, PinnedFile, Pinner, PinSource, index_lines
from benchwright.environments.requirement_files import read_requirements
from benchwright.environments.tools import Stopped, Tools
from benchwright.environments.vendor import arch_here
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.observer import Observer
from benchwright.kinds.suite.setup.install import (
    IndexOptions,
    package_indexes,
    read_suite,
    vendor_constraints,
)
from benchwright.kinds.suite.suites import suite_paths_of
from benchwright.options.table import Options


class PinOptions(msgspec.Struct, frozen=True, kw_only=True):
    variant: str | None = None
    constraints: tuple[str, ...] = ()
    from_scratch: bool = False
    where: IndexOptions = IndexOptions()


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a group. `status`: pinned, unchanged or failed."""

    name: str
    status: str
    variant: str
    files: tuple[PinnedFile, ...] = ()
    detail: str | None = None
    package: str | None = None


def pin(targets: Sequence[str], suite: Options, options: PinOptions, observer: Observer | None = None) -> list[Pinned]:
    """The files of the selected benchmarks; those of one group agree with each other."""
    observer = observer or Observer()
    wanted, _ = read_suite(targets, suite)
    paths = suite_paths_of(suite, wanted)
    variant = options.variant or paths.system.arch or arch_here()
    if variant == UNPINNED:
        raise InvalidInput(
            "'unpinned' cannot be pinned", where="--variant", remedy="name a vendor: cpu, cuda, rocm, xpu, hpu"
        )
    files = vendor_constraints(variant, variant, wanted, targets, options.constraints)
    groups = _groups(wanted, variant, files, observer)
    where = options.where
    tools = Tools()
    pinner = Pinner(
        choose_installer(where.installer, package_indexes(where)),
        tools,
        command=f"benchwright pin {' '.join(map(os.path.basename, targets))} --variant {variant}",
        index_lines=index_lines(where.index_url, where.indexes, where.find_links),
        from_scratch=options.from_scratch,
    )
    done = []
    with stops_on_signals(tools.stop):
        for group in groups:
            count = len(group.sources)
            observer.on_step(group.name, f"choosing versions for {count} requirements file{'s' if count != 1 else ''}")
            try:
                done.append(_pin(pinner, group, variant))
                observer.on_step_done(group.name)
            except Stopped:
                raise Interrupted("interrupted; run the same command again") from None
    return done


def _pin(pinner: Pinner, group: PinGroup, variant: str) -> Pinned:
    try:
        files = pinner.pin(group)
    except CannotPin as error:
        failure = error.failure
        read = [read_requirements(source.source) for source in group.sources]
        mention = next((f.packages[failure.package] for f in read if failure.package in f.packages), None)
        place = f"{mention.file}:{mention.line}: " if mention is not None else ""
        return Pinned(
            name=group.name, status="failed", variant=variant, detail=place + failure.what, package=failure.package
        )
    except OSError as error:
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        return Pinned(name=group.name, status="failed", variant=variant, detail=f"{where}{error.strerror or error}")
    changed = any(file.changed for file in files)
    return Pinned(name=group.name, status="pinned" if changed else "unchanged", variant=variant, files=tuple(files))


def _groups(
    wanted: Sequence[Benchmark],
    variant: str,
    constraint_files: Sequence[str],
    observer: Observer,
) -> list[PinGroup]:
    groups = []
    for name in dict.fromkeys(b.environment.name for b in wanted if b.environment is not None):
        environments = [b.environment for b in wanted if b.environment is not None and b.environment.name == name]
        sources = _sources(environments, variant, observer)
        if not sources:
            observer.on_note(f"{name}: no requirements.in, so nothing to pin")
            continue
        read = [(path, read_requirements(path)) for path in constraint_files]
        groups.append(
            PinGroup(
                name=name,
                sources=tuple(sources),
                constraint_files=tuple(path for path, file in read if not file.is_empty),
                constraints=tuple(dict.fromkeys(line for e in environments for line in e.constraints)),
                python=environments[0].python,
            )
        )
    return groups


def _sources(environments: Sequence[Environment], variant: str, observer: Observer) -> list[PinSource]:
    """Each file once, however many benchmarks share its folder."""
    found: dict[str, PinSource] = {}
    for environment in environments:
        for name in environment.requirements:
            path = os.path.join(environment.folder, name)
            if path in found or not name.endswith(".in") or not os.path.isfile(path):
                continue
            named = read_requirements(path).packages
            lacking = tuple(package for package in environment.packages if package not in named)
            for package in lacking:
                observer.on_note(f"{path}: lacks {package}; pinning it too")
            target = os.path.join(environment.folder, pinned_name(name, variant))
            found[path] = PinSource(source=path, target=target, added=lacking)
    return list(found.values())
