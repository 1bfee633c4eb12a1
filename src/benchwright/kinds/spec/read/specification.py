"""Specifications, and lists of them, as benchmarks."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.revision import CONTROL, TREATMENT, RevisionInfo
from benchwright.kinds.names import with_unique_names
from benchwright.kinds.spec.dialects import usual_command
from benchwright.kinds.spec.observers.converters import patterns_of
from benchwright.kinds.spec.options import SpecOptions
from benchwright.kinds.spec.read.document import load
from benchwright.kinds.spec.read.keys import META
from benchwright.kinds.spec.read.tests import ReadTest, tests_of
from benchwright.kinds.spec.spec_test import KIND, LABELS, SpecTest, SpecTestOptions, with_spec
from benchwright.kinds.yaml.value_types import PlacedValues, check

_MOST_FOLDERS_UP = 4  # paths of 2018 are relative to a folder above
_MOST_FILES = 10_000


class FaultyFile(NamedTuple):
    """A file that a list names and that cannot be read."""

    name: str
    source: str  # where it is named
    fault: InvalidInput


def read_specification(path: str, options: SpecOptions) -> list[Benchmark]:
    """The benchmarks of a specification or a list of them, in order; two for each test if there is a control.

    A file of a list that cannot be read becomes a benchmark with its `fault`, so that the others are measured.
    """
    reads = list(_tests_below(path, {}, (), options.framework))
    faults = [read.fault for read in reads if isinstance(read, FaultyFile)]
    if len(faults) == len(reads):
        raise faults[0]
    found = []
    for number, read in enumerate(reads):
        found += [_faulty(read)] if isinstance(read, FaultyFile) else _benchmarks(read, options, f"{path}:{number}")
    return with_unique_names(found)


def specification_faults(path: str) -> list[InvalidInput]:
    """The faults of a specification, or of each file of a list."""
    try:
        return [read.fault for read in _tests_below(path, {}, (), None) if isinstance(read, FaultyFile)]
    except InvalidInput as fault:
        return [fault]


def _faulty(read: FaultyFile) -> Benchmark:
    work = Command(argv=(), cwd=os.path.abspath(os.path.dirname(read.source)))
    return Benchmark(name=read.name, kind=KIND, workload=work, source=read.source, fault=read.fault.on_one_line)


def _tests_below(
    path: str, meta: Mapping[str, Any], above: tuple[str, ...], framework: str | None
) -> Iterable[ReadTest | FaultyFile]:
    file = load(path)
    value = file.value
    if isinstance(value, dict) and "benchmarks" in value and "tests" not in value:
        yield from _tests_of_list(file, meta, above, framework)
        return
    remarks = tuple(f"{path}:{remark.line}: {remark.what}" for remark in file.remarks)
    for read in tests_of(file, meta, framework):
        yield msgspec.structs.replace(read, notes=(*read.notes, *remarks))


def _tests_of_list(
    file: PlacedValues, outer: Mapping[str, Any], above: tuple[str, ...], framework: str | None
) -> Iterable[ReadTest | FaultyFile]:
    """The files that a list names. What it says about all of them does not replace what they say themselves."""
    here = os.path.realpath(file.path)
    if here in above:
        raise file.error("the list names itself, over " + " → ".join(map(os.path.basename, above)), (), "remove it")
    if file.value.get("meta") is not None:
        check(file, META, "meta", ("meta",))
    names = file.value["benchmarks"]
    if not isinstance(names, list) or not names or len(names) > _MOST_FILES:
        raise file.error("benchmarks is not a list of files", ("benchmarks",), 'write ["models/a.json"]')
    meta = {**outer, **{k: v for k, v in (file.value.get("meta") or {}).items() if v is not None}}
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name.strip() or "\0" in name:
            raise file.error("this is not a path", ("benchmarks", number), "write a path in quotes")
        try:
            found = list(_tests_below(_located(file, name, number), meta, (*above, here), framework))
        except InvalidInput as fault:
            at = f"{os.path.relpath(file.path)}:{file.place(('benchmarks', number)).line}"
            found = [FaultyFile(PurePath(name).stem or name, at, fault)]
        yield from found


def _located(file: PlacedValues, name: str, number: int) -> str:
    """Relative to the list; as in 2018, to a folder above it, such as `specifications`."""
    folder = os.path.dirname(file.path)
    tried = os.path.join(folder, name)
    for up in range(_MOST_FOLDERS_UP + 1):
        candidate = os.path.join(folder, *[".."] * up, name)
        if os.path.isfile(candidate):
            return os.path.normpath(candidate)
        if os.path.isabs(name):
            break
    near = os.path.dirname(tried)
    names = os.listdir(near) if os.path.isdir(near) else []
    remedy = did_you_mean(os.path.basename(name), names) or "check the path; it is relative to this file"
    raise file.error(f"no such file: {name}", ("benchmarks", number), remedy)


def _benchmarks(read: ReadTest, options: SpecOptions, pair: str) -> list[Benchmark]:
    """With a control, both sides; the control first, since the other is compared with it.

    Without one, a test of a model that has its own steps is a pair by itself, so that the model's tests stay in order.
    """
    treatment = options.treatment or RevisionInfo()
    if options.control is None:
        return [_benchmark(read, options, None, treatment, pair if read.in_order else "")]
    return [
        _benchmark(read, options, CONTROL, options.control, pair),
        _benchmark(read, options, TREATMENT, treatment, pair),
    ]


def _benchmark(read: ReadTest, options: SpecOptions, side: str | None, revision: RevisionInfo, pair: str) -> Benchmark:
    test = _completed(read.test, options, side, revision)
    lines = test.commands or ("",)  # empty: for our runtimes
    known = {name: getattr(test, name) for name in LABELS} | {"side": side, "commit": revision.commit}
    env = {**read.env}
    if side is not None:
        env["AIBENCH_TREATMENT_GROUP"] = "1" if side == TREATMENT else "0"
    made = Benchmark(
        name=_name(test) + (f" {side}" if side else ""),
        kind=KIND,
        workload=Command(argv=(" && ".join(lines),), cwd=os.path.dirname(test.path), shell=True),
        source=f"{os.path.relpath(test.path)}:{test.line}",
        env=env,
        metrics=patterns_of(test.converter.name, test.converter.args) if test.converter else (),
        timeout_s=read.timeout_s,
        launches=read.launches,
        labels={key: value for key, value in known.items() if value} | options.labels,
        notes=read.notes,
        pair=pair,
    )
    return with_spec(made, test)


def _completed(test: SpecTest, options: SpecOptions, side: str | None, revision: RevisionInfo) -> SpecTest:
    """With what the command line says."""
    programs = {**options.programs, **revision.programs}
    arguments = test.arguments
    backend = ",".join(options.backends) or None
    if backend and (test.commands or "program" in programs):
        arguments = (*arguments, f"--backend {shlex.quote(backend)}")
    test = msgspec.structs.replace(
        test,
        framework=options.framework or test.framework,
        arguments=arguments,
        programs=programs,
        backend=backend,
        build_folder=_build_folder(programs),
        side=side,
        revision=revision if revision != RevisionInfo() else None,
        **{name: getattr(options, name) for name in SpecTestOptions.__struct_fields__},
    )
    if not test.commands and test.program is not None and (line := usual_command(test)) is not None:
        test = msgspec.structs.replace(test, commands=(line,))
    return test


def _build_folder(programs: Mapping[str, str]) -> str | None:
    program = programs.get("program")
    return str(PurePath(program).parent) if program and os.path.isabs(program) else None


def _name(test: SpecTest) -> str:
    """The identifier says enough if it begins with the model's name."""
    return test.identifier if test.identifier.startswith(test.model) else f"{test.model}-{test.identifier}"
