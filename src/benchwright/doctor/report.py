"""A checkup as text for a terminal, and as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

import msgspec

from benchwright.core.machine import Machine
from benchwright.core.node.checkup import Checkup, Finding, State
from benchwright.core.numbers.quantities import format_bytes

FORMAT_VERSION = 1
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
_SIGNS = {State.OK: ("✓", "32"), State.WARNING: ("⚠", "33"), State.BAD: ("✗", "31"), State.UNKNOWN: ("?", "2")}
_LABEL = 11  # the widest name of a finding, as it is shown


def checkup_text(checkup: Checkup, *, width: int = 80, colour: bool = False) -> str:
    """One line for each finding, with what to do below those that need it; the verdict last."""
    paint = _Paint(colour)
    lines = _machine_lines(checkup.machine, width, paint)
    for topic, title in _TOPICS.items():
        findings = [f for f in checkup.findings if f.topic == topic]
        shown = [line for f in _merged_gpus(findings) if not _is_silent(f) for line in _lines(f, width, paint)]
        if shown:
            lines += ["", paint(f" {title}", "1"), *shown]
    silent = [_label(f) for f in checkup.findings if _is_silent(f)]
    if silent:
        lines += [
            "",
            *_signed(State.UNKNOWN, "", "not available on this system: " + ", ".join(silent), width, 5, paint),
        ]
    lines += ["", *_verdict(checkup, width, paint)]
    return "\n".join(lines) + "\n"


def checkup_json(checkup: Checkup) -> str:
    """What `doctor --json` prints; documented in docs/how-to/quiet-the-machine.md."""
    return json.dumps(checkup_body(checkup), indent=1, ensure_ascii=False) + "\n"


def checkup_body(checkup: Checkup) -> dict[str, object]:
    states = {f.state for f in checkup.findings}
    verdict = next((s for s in (State.BAD, State.WARNING) if s in states), State.OK)
    return {
        "version": FORMAT_VERSION,
        "verdict": verdict.value,
        "bad": [f.name for f in checkup.bad],
        "machine": {**msgspec.to_builtins(checkup.machine), "fingerprint": checkup.machine.fingerprint},
        "findings": [msgspec.to_builtins(f) for f in checkup.findings],
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
        "interpreters": [msgspec.to_builtins(interpreter) for interpreter in checkup.interpreters],
    }


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


def _lines(finding: Finding, width: int, paint: _Paint) -> list[str]:
    indent = 5 + _LABEL + 1
    lines = _signed(finding.state, f"{_label(finding):<{_LABEL}} ", finding.text, width, 5, paint)
    if finding.advice:
        advice = textwrap.wrap(finding.advice, width - indent - 2, break_on_hyphens=False)
        lines += [f"{' ' * indent}{'→' if n == 0 else ' '} {line}" for n, line in enumerate(advice)]
    return lines


def _signed(state: State, head: str, text: str, width: int, indent: int, paint: _Paint) -> list[str]:
    """`head` and `text` after the sign of `state`, wrapped; the sign alone is coloured, so that it changes no width."""
    sign, code = _SIGNS[state]
    margin = " " * (indent - 2)
    rest = " " * (indent + len(head))
    lines = textwrap.wrap(
        f"{margin}{sign} {head}{text}", width, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )
    return [lines[0].replace(sign, paint(sign, code), 1), *lines[1:]]


def _label(finding: Finding) -> str:
    """`governor`, `GPU 0 clock`, `free memory`: the finding's name as people say it."""
    topic, _, rest = finding.name.partition(".")
    if topic == "gpu":
        return " ".join(["GPU", *rest.split(".")])
    return {
        "cpu.pressure": "waiting",
        "memory.pressure": "waiting",
        "disk.pressure": "waiting",
        "disk.kind": "file system",
        "limits.files": "open files",
        "heat.zones": "temperature",
        "heat.power": "battery",
        "cpu.slowed": "throttling",
        "runtime.own": "own",
        "noise.wall": "wall time",
        "noise.cpu": "CPU time",
    }.get(finding.name, rest)


def _full_label(finding: Finding) -> str:
    """With the topic, for where it stands alone."""
    label = _label(finding)
    return label if finding.topic == "gpu" else f"{_TOPICS[finding.topic].partition(':')[0].lower()}: {label}"


def _merged_gpus(findings: Sequence[Finding]) -> list[Finding]:
    """What is fine about a GPU goes into one line; everything else keeps its own."""
    merged: list[Finding] = []
    fine: dict[str, list[str]] = {}
    for finding in findings:
        gpu = ".".join(finding.name.split(".")[:2])
        if finding.topic != "gpu" or finding.state is not State.OK:
            merged.append(finding)
        else:
            if gpu not in fine:
                merged.append(Finding(name=gpu, state=State.OK, text=""))
            fine.setdefault(gpu, []).append(finding.text)
    return [f if f.text else Finding(name=f.name, state=f.state, text="; ".join(fine[f.name])) for f in merged]


def _is_silent(finding: Finding) -> bool:
    """Nothing is known and there is nothing to do: these are listed together."""
    return finding.state is State.UNKNOWN and finding.advice is None


def _verdict(checkup: Checkup, width: int, paint: _Paint) -> list[str]:
    warnings = sum(1 for f in checkup.findings if f.state is State.WARNING)
    noted = f"{warnings} warning{'' if warnings == 1 else 's'}"
    if checkup.bad:
        state = State.BAD
        what = ", ".join(_full_label(f) for f in checkup.bad)
        text = f"measurements made now cannot be trusted ({what})" + (f"; {noted}" if warnings else "")
    elif warnings:
        state = State.WARNING
        text = f"{noted}: measure with care"
    else:
        state = State.OK
        text = "ready to measure"
    if not checkup.noise and not any(f.topic == "noise" for f in checkup.findings):
        text += "; noise not measured (--quick)"
    return _signed(state, "", text, width, 3, paint)
