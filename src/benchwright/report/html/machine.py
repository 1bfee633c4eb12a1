"""A machine, in one line and in pairs of name and value."""

from __future__ import annotations

from benchwright.core.machine import Machine
from benchwright.core.numbers.quantities import format_bytes
from benchwright.core.run import Run
from benchwright.report.html.benchmark import Pair
from benchwright.report.text.numbers import counted


def machine_line(machine: Machine) -> str:
    parts = [machine.hostname, f"{machine.cpu}, {counted(machine.cores, 'core')}", format_bytes(machine.memory_bytes)]
    names = [a.name for a in machine.accelerators]
    return " · ".join([*parts, *(f"{names.count(name)} × {name}" for name in dict.fromkeys(names))])


def revision_rows(run: Run) -> list[Pair]:
    """The commits whose code the run used."""
    rows: list[Pair] = []
    for revision in run.revisions:
        state = ", modified" if revision.modified else ""
        rows.append((f"Revision of {revision.subject}", f"{revision.words}{state} in {revision.root}", False))
    return rows


def machine_rows(machine: Machine) -> list[Pair]:
    rows = [
        ("Name", machine.hostname),
        ("Processor", machine.cpu),
        ("Cores", f"{machine.cores} of {machine.cores_total}"),
        ("Memory", format_bytes(machine.memory_bytes)),
        ("System", f"{machine.system} {machine.kernel}, {machine.architecture}"),
        ("Python", machine.python),
        ("Clock governor", machine.cpu_governor or ""),
        ("Runs in", machine.virtual or ""),
    ]
    for device in machine.accelerators:
        more = [format_bytes(device.memory_bytes)] if device.memory_bytes else []
        more += [f"driver {device.driver}"] if device.driver else []
        rows.append((f"Device {device.index}", ", ".join([device.name, *more])))
    return [*((name, text, False) for name, text in rows if text), ("Fingerprint", machine.fingerprint, True)]
