"""Energy of the processor's packages, from the kernel's powercap counters (RAPL of Intel and AMD).

The counters are in microjoules, start again at zero when they are full, and are often readable by root only.
"""

from __future__ import annotations

import os

from benchwright.agent.samplers.base import SampledJob, Sampler, SamplerReading

_FOLDER = "/sys/class/powercap"


class RaplSampler(Sampler):
    """One counter for each package: joules since the sampler was opened."""

    name = "rapl"

    def __init__(self, domains: list[str]) -> None:
        self._domains = domains
        self._last_uj = [0] * len(domains)
        self._full_uj = [_read(f"{domain}/max_energy_range_uj") for domain in domains]
        self._used_uj: list[int] | None = None  # None: nothing was read yet

    def sample(self, now_ns: int) -> list[SamplerReading]:
        found = [_read(f"{domain}/energy_uj") for domain in self._domains]
        if any(value is None for value in found):
            return []
        now = [value for value in found if value is not None]
        if self._used_uj is None:
            self._used_uj = [0] * len(now)
        else:
            for package, value in enumerate(now):
                self._used_uj[package] += _advanced(self._last_uj[package], value, self._full_uj[package])
        self._last_uj = now
        alone = len(now) == 1
        return [
            SamplerReading({"package_j": used / 1e6}, None if alone else package)
            for package, used in enumerate(self._used_uj)
        ]


def _advanced(before: int, now: int, full: int | None) -> int:
    if now >= before:
        return now - before
    return now if full is None else full - before + now


def _read(path: str) -> int | None:
    try:
        with open(path, "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def packages(folder: str) -> list[str]:
    """The domains of whole packages that can be read; those inside them (cores, memory) would count twice."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    domains = [f"{folder}/{name}" for name in names if name.startswith("intel-rapl:") and name.count(":") == 1]
    return [domain for domain in domains if _read(f"{domain}/energy_uj") is not None]


def open_sampler(subject: SampledJob) -> Sampler | None:
    """None where the kernel has no such counters, or keeps them for root."""
    domains = packages(_FOLDER)
    return RaplSampler(domains) if domains else None
