"""Differences between two runs besides the intended change."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Mapping

import msgspec

from benchwright.analysis.comparison.comparable import ComparableResult, ComparableRun, comparable
from benchwright.core.benchmark import Benchmark
from benchwright.core.comparison import Difference
from benchwright.core.machine import Machine
from benchwright.core.run import Run

_ABSENT = "not set"


def differences(control: Run, treatment: Run) -> tuple[Difference, ...]:
    """Severe ones first: another machine, or a benchmark of the same name that does something else."""
    return differences_between(comparable(control, ()), comparable(treatment, ()))


def differences_between(control: ComparableRun, treatment: ComparableRun) -> tuple[Difference, ...]:
    runs = control.run, treatment.run
    found = [*_machine(runs[0].machine, runs[1].machine)]
    found += _changed({"workers": (runs[0].workers, runs[1].workers)}, severe=False)
    chosen = len(control.results) == len(treatment.results) == 1
    others = {r.benchmark.name: r for r in treatment.results}
    for before in control.results:
        after = treatment.results[0] if chosen else others.get(before.benchmark.name)
        if after is not None:
            if before.benchmark != after.benchmark:
                found += _benchmark(before.benchmark, after.benchmark)
            if before.work:
                found += _changed(_facts(before, after), severe=False)
    found += _packages(runs[0].packages, runs[1].packages)
    return tuple(sorted(found, key=lambda d: not d.severe))


def _machine(before: Machine, after: Machine) -> Iterable[Difference]:
    severe = {
        "machine: system": (before.system, after.system),
        "machine: architecture": (before.architecture, after.architecture),
        "machine: CPU": (before.cpu, after.cpu),
        "machine: cores": (f"{before.cores} of {before.cores_total}", f"{after.cores} of {after.cores_total}"),
        "machine: memory": (_gib(before.memory_bytes), _gib(after.memory_bytes)),
        "machine: accelerators": (_accelerators(before), _accelerators(after)),
    }
    if before.fingerprint != after.fingerprint:
        yield from _changed(severe, severe=True)
    yield from _changed(
        {
            "host": (before.hostname, after.hostname),
            "kernel": (before.kernel, after.kernel),
            "governor": (before.cpu_governor, after.cpu_governor),
            "virtualisation": (before.virtual, after.virtual),
            "accelerator driver": (_drivers(before), _drivers(after)),
            "python": (before.python, after.python),
        },
        severe=False,
    )


def _benchmark(before: Benchmark, after: Benchmark) -> Iterable[Difference]:
    # Benchmarks with different names were paired on purpose: then the command is what is compared.
    same_name = before.name == after.name
    where = before.name if same_name else f"{before.name} → {after.name}"
    old, new = _words(before), _words(after)
    if old != new:
        only_interpreter = old[1:] == new[1:] and _is_python(old[0]) and _is_python(new[0])
        yield Difference(
            what=f"{where}: command",
            control=" ".join(old),
            treatment=" ".join(new),
            severe=same_name and not only_interpreter,
        )
    yield from _changed({f"{where}: placement": (before.placement, after.placement)}, severe=same_name)
    methods = [{m.name: m.aggregate for m in b.metrics} for b in (before, after)]
    common = methods[0].keys() & methods[1].keys()
    yield from _changed(
        {f"{where}: method of {name}": (methods[0][name], methods[1][name]) for name in sorted(common)}, severe=True
    )
    yield from _changed(
        {
            f"{where}: folder": (before.workload.cwd, after.workload.cwd),
            f"{where}: stop rule": (before.stop, after.stop),
            f"{where}: warm-up": (before.warmup, after.warmup),
            f"{where}: loop": (before.loop, after.loop),
        },
        severe=False,
    )
    for name in sorted(before.env.keys() | after.env.keys()):
        pair = {f"{where}: environment {name}": (before.env.get(name, _ABSENT), after.env.get(name, _ABSENT))}
        yield from _changed(pair, severe=False)


def _facts(before: ComparableResult, after: ComparableResult) -> dict[str, tuple[object, object]]:
    """Work of an item according to both sides: rates of items of different work cannot be compared."""
    old, new = before.work, after.work
    return {f"{before.benchmark.name}: {name}": (f"{old[name]:g}", f"{new[name]:g}") for name in old if name in new}


def _packages(before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]) -> Iterable[Difference]:
    """Package by package; if each run has only one interpreter, they are compared even if their paths differ."""
    if not before or not after:
        return
    pairs = [(before[i], after[i]) for i in before if i in after]
    if not pairs and len(before) == len(after) == 1:
        pairs = [(next(iter(before.values())), next(iter(after.values())))]
    seen = set()
    for old, new in pairs:
        for name in sorted(old.keys() | new.keys()):
            versions = old.get(name), new.get(name)
            if versions[0] != versions[1] and (name, versions) not in seen:
                seen.add((name, versions))
                yield from _changed({f"package {name}": (versions[0] or "none", versions[1] or "none")}, severe=False)


def _changed(pairs: Mapping[str, tuple[object, object]], *, severe: bool) -> Iterable[Difference]:
    for what, (old, new) in pairs.items():
        if old != new:
            yield Difference(what=what, control=_text(old, new), treatment=_text(new, old), severe=severe)


def _words(benchmark: Benchmark) -> tuple[str, ...]:
    work = benchmark.workload
    return (*work.words, *(["(shell)"] if work.shell else []), *work.variant)


def _is_python(word: str) -> bool:
    return re.fullmatch(r"python[0-9.]*", os.path.basename(word)) is not None


def _accelerators(machine: Machine) -> str:
    return ", ".join(a.name for a in machine.accelerators) or "none"


def _drivers(machine: Machine) -> str:
    return ", ".join(sorted({a.driver for a in machine.accelerators if a.driver})) or "none"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _text(value: object, other: object) -> str:
    """Of a rule with several parts, only the differing ones."""
    if not isinstance(value, msgspec.Struct):
        return _ABSENT if value is None else str(value)
    against = other if isinstance(other, type(value)) else type(value)()
    parts = {name: getattr(value, name) for name in value.__struct_fields__}
    changed = {name: part for name, part in parts.items() if part != getattr(against, name)}
    return ", ".join(f"{name.replace('_', ' ')} {part}" for name, part in changed.items()) or "as usual"
