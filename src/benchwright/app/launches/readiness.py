"""Whether benchmarks have what they need before they can run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.executors.observer import is_this_machine
from benchwright.kinds.base import nothing_ready
from benchwright.kinds.registry import by_kind
from benchwright.options.table import Options


def busy_notes(machine: Machine) -> list[Note]:
    """Whether the machine has much to do before anything is measured."""
    load = os.getloadavg()[0] if is_this_machine(machine) else 0.0
    if machine.cores <= 0 or load <= 0.5 * machine.cores:
        return []
    cores = f"{machine.cores} core{'' if machine.cores == 1 else 's'}"
    text = f"the machine was busy before this run began (load {load:.1f} on {cores})"
    return [Note(text=text, kind="busy")]


def not_ready(benchmarks: Sequence[Benchmark], options: Options) -> dict[str, str]:
    """Benchmarks that lack something before they can run, such as an environment or data, with what to do about it."""
    found: dict[str, str] = {}
    for kind, same in by_kind(b for b in benchmarks if b.enabled):
        found |= kind.not_ready(same, options)
    return found


def refused(benchmarks: Sequence[Benchmark], options: Options) -> dict[str, str]:
    """Benchmarks that a run cannot make ready, and why; raises what it would raise if none is left."""
    enabled = [b for b in benchmarks if b.enabled]
    found: dict[str, str] = {}
    for kind, same in by_kind(enabled):
        found |= kind.refused(same)
    if found and all(b.name in found for b in enabled):
        kind, same = by_kind(enabled)[0]
        error = kind.refusal(same, options)
        told = [f"{name}: {why}" for name, why in found.items()]
        raise error if isinstance(error, InvalidInput) else CannotMeasure(nothing_ready(told))
    return found


def refuse_if_none_is_ready(benchmarks: Sequence[Benchmark], options: Options, failed: Mapping[str, str]) -> None:
    """If some can be run, they are, and the others fail with their reason."""
    enabled = [b for b in benchmarks if b.enabled]
    lacking = not_ready(enabled, options)
    if enabled and all(b.name in lacking for b in enabled):
        if any(b.name in failed for b in enabled):
            reasons: dict[str, list[str]] = {}
            for name, why in lacking.items():
                reasons.setdefault(failed.get(name, why), []).append(name)
            raise CannotMeasure(nothing_ready([f"{', '.join(names)}: {why}" for why, names in reasons.items()]))
        kind, same = by_kind(enabled)[0]
        raise kind.refusal(same, options)
