"""A checkup as text for a terminal, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

import msgspec

from benchwright.core.checkup import Checkup
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.quantities import format_bytes

FORMAT_VERSION = 2
_TOPICS = {
    "cpu": "Processor",
    "heat": "Heat and power",
    "memory": "Memory",
    "disk": "Disk",
    "limits": "Limits",
    "gpu": "GPUs",
    "runtime": "Runtimes",
    "sampler": "Samplers",
    "plugin": "Plug-ins",
    "noise": "Noise: one program measured as if it were two",
}
_SIGNS = {"ok": ("✓", "32"), "warning": ("⚠", "33"), "error": ("✗", "31"), "unknown": ("?", "2")}
_LABELS = {
    "cpu.pressure": "waiting",
    "memory.pressure": "waiting",
    "disk.pressure": "waiting",
    "disk.kind": "file system",
    "limits.files": "open files",
    "heat.zones": "temperature",
    "heat.power": "battery",
    "cpu.slowed": "throttling",
    "noise.wall": "wall time",
    "noise.cpu": "CPU time",
}
_WIDTH = 11  # of the widest label


def checkup_text(checkup: Checkup, *, width: int = 80, colour: bool = False) -> str:
    """One line for each note, with its remedy below; the verdict last."""
    paint = _Paint(colour)
    lines = _machine_lines(checkup.machine, width, paint)
    for topic, title in _TOPICS.items():
        notes = [note for note in checkup.notes if _topic(note) == topic]
        shown = [line for n in _merged_gpus(notes) if not _is_silent(n) for line in _lines(n, width, paint)]
        if shown:
            lines += ["", paint(f" {title}", "1"), *shown]
    silent = ", ".join(_label(note) for note in checkup.notes if _is_silent(note))
    if silent:
        lines += ["", *_signed("unknown", "", f"not available on this system: {silent}", width, 5, paint)]
    lines += ["", *_verdict(checkup, width, paint)]
    return "\n".join(lines) + "\n"


def checkup_json(checkup: Checkup) -> str:
    """The output of `doctor --json`; documented in docs/how-to/quiet-the-machine.md."""
    severities = {note.severity for note in checkup.notes}
    body = {
        "version": FORMAT_VERSION,
        "verdict": next((worst for worst in ("error", "warning") if worst in severities), "ok"),
        "errors": [note.kind for note in checkup.errors],
        "machine": {**msgspec.to_builtins(checkup.machine), "fingerprint": checkup.machine.fingerprint},
        "notes": [
            {key: getattr(note, key) for key in ("kind", "severity", "text", "remedy")} for note in checkup.notes
        ],
        "health": msgspec.to_builtins(checkup.health),
        "noise": [
            {
                "metric": noise.metric,
                "launches": noise.launches,
                "median_s": noise.median_s,
                "pairs_s": [list(pair) for pair in noise.pairs],
                "ratio": noise.ratio,
                "interval_95": [noise.interval.low, noise.interval.high],
                "floor": noise.floor,
                "spread": noise.spread,
                "detectable": {str(launches): share for launches, share in noise.detectable.items()},
            }
            for noise in checkup.noise
        ],
        "interpreters": msgspec.to_builtins(checkup.interpreters),
    }
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


class _Paint:
    """Wraps text in a colour, where colours are wanted."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def __call__(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.wanted else text


def _machine_lines(machine: Machine, width: int, paint: _Paint) -> list[str]:
    cores = (
        f"{machine.cores} cores"
        if machine.cores == machine.cores_total
        else f"{machine.cores} of {machine.cores_total} cores"
    )
    parts = [
        machine.cpu,
        cores,
        format_bytes(machine.memory_bytes),
        *(f"{a.name} {format_bytes(a.memory_bytes or 0)}" for a in machine.accelerators),
        f"{machine.system} {machine.kernel} {machine.architecture}",
        *([machine.virtual] if machine.virtual else []),
    ]
    body = textwrap.wrap(" · ".join(parts), width - 3, break_on_hyphens=False)
    return [paint(f" {machine.hostname}", "1"), *(f"   {line}" for line in body)]


def _lines(note: Note, width: int, paint: _Paint) -> list[str]:
    indent = 5 + _WIDTH + 1
    lines = _signed(note.severity, f"{_label(note):<{_WIDTH}} ", note.text, width, 5, paint)
    if note.remedy:
        remedy = textwrap.wrap(note.remedy, width - indent - 2, break_on_hyphens=False)
        lines += [f"{' ' * indent}{'→' if n == 0 else ' '} {line}" for n, line in enumerate(remedy)]
    return lines


def _signed(severity: str, head: str, text: str, width: int, indent: int, paint: _Paint) -> list[str]:
    """`head` and `text` after the sign of `severity`, wrapped; only the sign is coloured, so no width changes."""
    sign, code = _SIGNS[severity]
    margin = " " * (indent - 2)
    rest = " " * (indent + len(head))
    lines = textwrap.wrap(
        f"{margin}{sign} {head}{text}", width, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )
    return [lines[0].replace(sign, paint(sign, code), 1), *lines[1:]]


def _topic(note: Note) -> str:
    return (note.kind or "").partition(".")[0]


def _label(note: Note) -> str:
    """`governor`, `GPU 0 clock`, `free`: the kind as people say it."""
    kind = note.kind or ""
    rest = kind.partition(".")[2]
    return f"GPU {rest.replace('.', ' ')}" if _topic(note) == "gpu" else _LABELS.get(kind, rest)


def _full_label(note: Note) -> str:
    """With the topic, for use outside its section."""
    topic, label = _topic(note), _label(note)
    return label if topic == "gpu" else f"{_TOPICS[topic].partition(':')[0].lower()}: {label}"


def _merged_gpus(notes: Sequence[Note]) -> list[Note]:
    """All that is fine about a GPU on one line; everything else keeps its own."""
    merged: dict[str | None, Note] = {}
    for note in notes:
        if _topic(note) != "gpu" or note.severity != "ok":
            merged[note.kind] = note
            continue
        gpu = (note.kind or "").rpartition(".")[0]
        text = f"{merged[gpu].text}; {note.text}" if gpu in merged else note.text
        merged[gpu] = Note(kind=gpu, severity="ok", text=text)
    return list(merged.values())


def _is_silent(note: Note) -> bool:
    """Nothing is known and there is nothing to do: these are listed together."""
    return note.severity == "unknown" and note.remedy is None


def _verdict(checkup: Checkup, width: int, paint: _Paint) -> list[str]:
    warnings = sum(note.severity == "warning" for note in checkup.notes)
    noted = f"{warnings} warning{'' if warnings == 1 else 's'}"
    severity, text = "ok", "ready to measure"
    if checkup.errors:
        why = ", ".join(map(_full_label, checkup.errors))
        severity, text = (
            "error",
            f"measurements taken now cannot be trusted ({why})" + (f"; {noted}" if warnings else ""),
        )
    elif warnings:
        severity, text = "warning", f"{noted}: measure with care"
    if not checkup.noise and not any(_topic(note) == "noise" for note in checkup.notes):
        text += "; noise not measured (--quick)"
    return _signed(severity, "", text, width, 3, paint)
