"""Which vendor's accelerator this machine has, by the files of its driver."""

from __future__ import annotations

import os
from pathlib import Path

ARCHES = ("cpu", "cuda", "rocm", "xpu", "hpu")
_SIGNS = (
    ("cuda", ("/proc/driver/nvidia/version", "/dev/nvidiactl")),
    ("rocm", ("/dev/kfd",)),
    ("hpu", ("/dev/hl0", "/sys/class/habanalabs")),
)


def arch_here() -> str:
    """One of ARCHES. Never `xpu`, since Intel GPUs may only drive a screen: name it in a system file."""
    return next((arch for arch, signs in _SIGNS if any(map(os.path.exists, signs))), "cpu")


def constraints_file(arch: str, folders: list[str]) -> str | None:
    """The first `constraints/<arch>.txt` in one of `folders` or a folder above it; else the packaged one."""
    for folder in (Path(os.path.abspath(name)) for name in folders):
        for place in (folder, *folder.parents):
            path = place / "constraints" / f"{arch}.txt"
            if path.is_file():
                return str(path)
    packaged = os.path.join(os.path.dirname(__file__), "constraints", f"{arch}.txt")
    return packaged if os.path.isfile(packaged) else None
