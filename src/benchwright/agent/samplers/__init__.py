"""Samplers: the built-in ones, and those that installed packages add in the group `benchwright.samplers`."""

from __future__ import annotations

from benchwright.core.plugins.entry_points import EntryPoint, find_entry_points

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP = "benchwright.samplers"
BUILT_IN = {
    "process": "benchwright.agent.samplers.process:open_sampler",
    "pss": "benchwright.agent.samplers.process:open_pss_sampler",
    "machine": "benchwright.agent.samplers.machine:open_sampler",
    "nvidia": "benchwright.agent.samplers.nvidia:open_sampler",
    "amd": "benchwright.agent.samplers.amd:open_sampler",
    "intel": "benchwright.agent.samplers.intel:open_sampler",
    "rapl": "benchwright.agent.samplers.rapl:open_sampler",
}


def find_samplers(path: Iterable[str] | None = None) -> dict[str, EntryPoint]:
    """Every sampler installed on `path` (sys.path if not given), by name; none of them is imported."""
    ours = {name: EntryPoint(name, target, "benchwright", "") for name, target in BUILT_IN.items()}
    return {**find_entry_points(GROUP, path), **ours}
