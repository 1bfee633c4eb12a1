"""Which nodes are of one make, and what sets a node apart from the others of its make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.quantities import format_bytes
from benchwright.doctor.checked_nodes import CheckedNode

FAILED = ".failed"  # ends the kind of a note about a benchmark that failed
_COMMON = 0.5  # of the others: a note that more of them have is no reason
_OWN_MAKE = 1 / 3  # of the nodes: so many with fewer GPUs are not broken, but another make
_LESS_MEMORY = 0.95
_FAULTS = (".errors", ".link")  # the node is out, however fast it is
_UNLIKE_OTHERS = ("cpu.quota", FAILED)  # … where the others have no such thing
_REASONS = ("cpu.", "heat.", "gpu.", "memory.", "launches.")
_WEAK = ("cpu.virtual", "cpu.smt", "cpu.turbo", "cpu.clock")


def makes_of(machines: Mapping[str, Machine]) -> dict[str, str]:
    """The make of each node. What may be broken, such as a GPU that is missing, does not make it another one."""
    gpus = {name: Counter(gpu.name for gpu in machine.accelerators) for name, machine in machines.items()}
    found = {}
    for name, machine in machines.items():
        alike = [n for n, m in machines.items() if _processor(m) == _processor(machine)]
        sets = Counter(tuple(sorted(gpus[n].items())) for n in alike)
        larger = [s for s in sets if gpus[name] < Counter(dict(s))]
        own = tuple(sorted(gpus[name].items()))
        chosen = own
        if larger and sets[own] < _OWN_MAKE * len(alike):
            chosen = max(larger, key=lambda s: sets[s])
        words = [machine.cpu, f"{machine.cores_total} cores", *(f"{count} × {gpu}" for gpu, count in chosen)]
        found[name] = ", ".join(words)
    return found


def _processor(machine: Machine) -> tuple[str, str, str, int]:
    return machine.system, machine.architecture, machine.cpu, machine.cores_total


def faults_of(node: CheckedNode, others: Sequence[CheckedNode]) -> list[Note]:
    """Faults of a node, however fast it is: hardware that the others have, memory errors, a failed launch."""
    if node.problem is not None:
        return [Note(text=node.problem, severity="error", kind="node.problem")]
    found = [note for note in _telling(node) if (note.kind or "").endswith(_FAULTS)]
    found += [note for note in reasons_for(node, others) if (note.kind or "").endswith(_UNLIKE_OTHERS) and others]
    if node.machine is None or not others:
        return found
    most = max(len(other.machine.accelerators) for other in others if other.machine is not None)
    if (count := len(node.machine.accelerators)) < most:
        text = f"{most - count} of {most} GPUs missing"
        found.append(Note(text=text, severity="error", kind="gpu.missing", remedy="see nvidia-smi -L and dmesg there"))
    cores = sorted(other.machine.cores for other in others if other.machine is not None)
    if node.machine.cores < cores[len(cores) // 2]:
        text = f"may use {node.machine.cores} of {node.machine.cores_total} cores, the others {cores[len(cores) // 2]}"
        found.append(
            Note(text=text, severity="error", kind="cpu.missing", remedy="see its affinity and control groups")
        )
    sizes = sorted(other.machine.memory_bytes for other in others if other.machine is not None)
    usual = sizes[len(sizes) // 2]
    if node.machine.memory_bytes < _LESS_MEMORY * usual:
        text = f"{format_bytes(node.machine.memory_bytes)} of memory, the others have {format_bytes(usual)}"
        found.append(Note(text=text, severity="error", kind="memory.missing"))
    return found


def reasons_for(node: CheckedNode, others: Sequence[CheckedNode]) -> list[Note]:
    """Possible reasons why it is slow: warnings that it has and most of the others do not."""
    common = Counter(note.kind for other in others for note in _telling(other))
    return [
        note
        for note in _telling(node)
        if common[note.kind] <= _COMMON * len(others)
        and (note.kind or "").startswith(_REASONS)
        and note.kind not in _WEAK
    ]


def _telling(node: CheckedNode) -> list[Note]:
    return [note for note in node.notes if note.severity in ("warning", "error")]
