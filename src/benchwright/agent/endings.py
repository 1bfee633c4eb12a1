"""How a program ended: whether it was for lack of memory."""

from __future__ import annotations

import re
import signal

from benchwright.agent.processes import read_proc

# Compiled when a program has failed: most do not, and starting the agent must stay cheap.
_SIGNS = (
    rb"CUDA out of memory|CUDA error: out of memory|torch(?:\.cuda)?\.OutOfMemoryError|HIP out of memory"
    rb"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory"
    rb"|(?:^|\n)MemoryError\b|numpy\.[\w.]*_ArrayMemoryError|std::bad_alloc|Cannot allocate memory|can't allocate memory"
    rb"|java\.lang\.OutOfMemoryError|runtime: out of memory"
)


class OomKills:
    """How often the kernel killed for memory: in our own control group (None: it does not say), and at all."""

    __slots__ = ("group", "machine")

    def __init__(self, group: int | None, machine: int | None) -> None:
        self.group = group
        self.machine = machine


def ran_out_of_memory(
    *,
    exit_code: int | None,
    signal_number: int | None,
    killed_by_us: bool,
    before: OomKills,
    after: OomKills,
    log_end: bytes,
) -> bool:
    """Whether the program ended for lack of memory, as far as it can be told from outside."""
    if exit_code == 0 or killed_by_us:
        return False
    if exit_code is None and signal_number is None:
        return False  # it never ran
    if before.group is not None and after.group is not None:
        if after.group > before.group:
            return True
    elif signal_number == signal.SIGKILL and (after.machine or 0) > (before.machine or 0):
        # The machine's counter is about others too, so only together with a kill that nobody here sent.
        return True
    return re.search(_SIGNS, log_end) is not None


def read_oom_kills() -> OomKills:
    """The counters now."""
    return OomKills(_group_counter(), _counter("/proc/vmstat"))


def _group_counter() -> int | None:
    for line in (read_proc("/proc/self/cgroup") or b"").decode(errors="replace").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found = _counter(f"/sys/fs/cgroup{path.rstrip('/')}/memory.events")
        elif "memory" in controllers.split(","):
            found = _counter(f"/sys/fs/cgroup/memory{path.rstrip('/')}/memory.oom_control")
        else:
            continue
        if found is not None:
            return found
    return None


def _counter(path: str) -> int | None:
    match = re.search(rb"^oom_kill (\d+)", read_proc(path) or b"", re.MULTILINE)
    return int(match[1]) if match else None
