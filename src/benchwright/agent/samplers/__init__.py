"""Samplers: the built-in ones, and those that other packages offer through the group `benchwright.samplers`."""

from __future__ import annotations

import os
import sys

GROUP = "benchwright.samplers"
BUILT_IN = {
    "process": "benchwright.agent.samplers.process:open_sampler",
    "pss": "benchwright.agent.samplers.process:open_pss_sampler",
    "machine": "benchwright.agent.samplers.machine:open_sampler",
    "nvidia": "benchwright.agent.samplers.nvidia:open_sampler",
}


def find_samplers(path: list[str] | None = None) -> dict[str, str]:
    """Name → `module:function` of every sampler installed on `path` (sys.path if not given).

    Reads the entry-point files itself: importlib.metadata costs more than everything else in the agent together.
    """
    found: dict[str, str] = {}
    for folder in sys.path if path is None else path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                found.update(_read_group(os.path.join(folder, name, "entry_points.txt")))
    return {**found, **BUILT_IN}


def _read_group(path: str) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return {}
    _, header, rest = text.partition(f"[{GROUP}]".encode())
    if not header:
        return {}
    section = rest.split(b"\n[", 1)[0].decode(errors="replace")
    pairs = (line.partition("=") for line in section.splitlines())
    return {name.strip(): target.strip() for name, equals, target in pairs if equals}
