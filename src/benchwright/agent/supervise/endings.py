"""Whether a program ended for lack of memory or disk space."""

from __future__ import annotations

import os
import re
import signal

from benchwright.agent.processes.process_tree import read_proc

# Compiled only if a program fails: starting the agent must stay cheap.
_SIGNS = (
    rb"CUDA out of memory|CUDA error: out of memory|torch(?:\.cuda)?\.OutOfMemoryError|HIP out of memory"
    rb"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|CUBLAS_STATUS_ALLOC_FAILED|RESOURCE_EXHAUSTED: Out of memory"
    rb"|(?:^|\n)MemoryError\b|numpy\.[\w.]*_ArrayMemoryError|std::bad_alloc|Cannot allocate memory|can't allocate memory"
    rb"|java\.lang\.OutOfMemoryError|runtime: out of memory"
)

_DISK_SIGNS = rb"No space left on device|\bENOSPC\b|[Dd]isk quota exceeded|\bEDQUOT\b"
_FULL_BYTES = 4096  # less than this is free: not even a line can be written


class OomKills:
    """How often the kernel killed for memory: in our control group (None: not reported), and on the machine."""

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
    """Whether the program ran out of memory, as far as is visible from outside."""
    if exit_code == 0 or killed_by_us:
        return False
    if exit_code is None and signal_number is None:
        return False  # it never ran
    if before.group is not None and after.group is not None:
        if after.group > before.group:
            return True
    elif signal_number == signal.SIGKILL and (after.machine or 0) > (before.machine or 0):
        # The machine's counter includes others, so it counts only together with a kill that we did not send.
        return True
    return re.search(_SIGNS, log_end) is not None


def ran_out_of_disk(*, failed: bool, log_end: bytes, log: str) -> bool:
    """Whether it failed for lack of disk space, or its log may be cut off because the disk is full."""
    if failed and re.search(_DISK_SIGNS, log_end) is not None:
        return True
    try:
        disk = os.statvfs(os.path.dirname(log) or ".")
    except OSError:
        return False
    # Only root may use the reserved blocks.
    free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    return disk.f_blocks > 0 and free * disk.f_frsize < _FULL_BYTES


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


def leftovers_text(asked: int, killed: int) -> str:
    """About processes that the program left running: how many were terminated, and how many of them killed."""
    text = f"the program ended, but {asked} process(es) it had started were still running and were terminated"
    return f"{text}, {killed} of them with SIGKILL" if killed else text


def late_output_text(late_bytes: int) -> str:
    return (
        f"{late_bytes} bytes of output came from a process that outlived the program, and were ignored; "
        "have the program wait for its children"
    )
