"""What compiled code is only good for: the kind of processor it was compiled for."""

from __future__ import annotations

import glob
import hashlib
import platform
from typing import List, Set


def cpu_kind() -> str:
    """What the processor can do, in short; the same on machines whose code may be exchanged."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        flags = platform.processor()
    return f"{platform.machine()} {hashlib.sha256(flags.encode()).hexdigest()[:12]}"


def gpu_models() -> List[str]:
    """Models of the graphics processors, by their driver's account."""
    found: Set[str] = set()
    for path in glob.glob("/proc/driver/nvidia/gpus/*/information"):
        with open(path, encoding="utf-8", errors="replace") as file:
            found.update(line.partition(":")[2].strip() for line in file if line.startswith("Model:"))
    return sorted(found)
