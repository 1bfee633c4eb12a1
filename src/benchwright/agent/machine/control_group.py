"""The limits of this process's control groups, v1 and v2: its own group and all above it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from benchwright.agent.processes.kernel import read_number, read_text


class MemoryLimit(msgspec.Struct, frozen=True, kw_only=True):
    limit_bytes: int
    used_bytes: int  # without caches the kernel would drop


def read_cpu_quota(root: str) -> float | None:
    """How many cores' worth of CPU time the strictest group allows; None without a limit."""
    quotas = []
    for folder in _group_folders(root, "cpu"):
        words = (read_text(folder + "/cpu.max") or "").split()
        quota, period = read_number(folder + "/cpu.cfs_quota_us"), read_number(folder + "/cpu.cfs_period_us")
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            quota, period = int(words[0]), int(words[1])
        if quota is not None and period is not None and quota > 0 and period > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def read_throttled_percent(root: str) -> float | None:
    """The share of periods in which a limited group ran out of CPU time; of several groups the worst."""
    shares = []
    for folder in _group_folders(root, "cpu"):
        counts = _read_counts(folder + "/cpu.stat")
        periods = counts.get("nr_periods", 0)
        if periods > 0:
            shares.append(100 * counts.get("nr_throttled", 0) / periods)
    return max(shares, default=None)


def read_throttled_s(root: str) -> float:
    """For how long groups with a limit have been held back since they were made, all cores together; of several the worst."""
    found = [_read_counts(folder + "/cpu.stat") for folder in _group_folders(root, "cpu")]
    return max((c.get("throttled_usec", 0) / 1e6 + c.get("throttled_time", 0) / 1e9 for c in found), default=0.0)


def read_memory_limits(root: str) -> Iterator[MemoryLimit]:
    """Of each group that has one."""
    for folder in _group_folders(root, "memory"):
        limit, used = read_number(folder + "/memory.max"), read_number(folder + "/memory.current")
        if limit is None:
            limit, used = (read_number(f"{folder}/memory.{n}_in_bytes") for n in ("limit", "usage"))
        if limit is None or used is None:
            continue
        counts = _read_counts(folder + "/memory.stat")
        cached = counts.get("inactive_file", counts.get("total_inactive_file", 0))
        yield MemoryLimit(limit_bytes=limit, used_bytes=max(0, used - cached))


def _read_counts(path: str) -> dict[str, int]:
    pairs = (line.split() for line in (read_text(path) or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _group_folders(root: str, controller: str) -> Iterator[str]:
    mounted = os.path.join(root, "sys/fs/cgroup")
    for line in (read_text(os.path.join(root, "proc/self/cgroup")) or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, found, path = rest.partition(":")
        if not found or (controllers and controller not in controllers.split(",")):
            continue
        # If both versions are in use, v2 is a folder beside the controllers of v1.
        tops = [f"{mounted}/{controllers}"] if controllers else [mounted, f"{mounted}/unified"]
        while True:
            yield from (top + path.rstrip("/") for top in tops)
            if path in ("/", ""):
                break
            path = os.path.dirname(path)
