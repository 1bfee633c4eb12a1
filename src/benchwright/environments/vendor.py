"""Whose accelerator this machine has, told from the files its driver makes."""

from __future__ import annotations

import os

ARCHES = ("cpu", "cuda", "rocm", "xpu", "hpu")
_SIGNS = (
    ("cuda", ("/proc/driver/nvidia/version", "/dev/nvidiactl")),
    ("rocm", ("/dev/kfd",)),
    ("hpu", ("/dev/hl0", "/sys/class/habanalabs")),
)


def arch_here() -> str:
    """One of ARCHES. Intel's GPUs drive screens too, so `xpu` is never guessed: a system file says it."""
    return next((arch for arch, signs in _SIGNS if any(map(os.path.exists, signs))), "cpu")


def constraints_file(arch: str, folders: list[str]) -> str | None:
    """`constraints/<arch>.txt` in the first of `folders` or the nearest folder above it; else the packaged one."""
    for folder in folders:
        place = os.path.abspath(folder)
        while True:
            path = os.path.join(place, "constraints", f"{arch}.txt")
            if os.path.isfile(path):
                return path
            above = os.path.dirname(place)
            if above == place:
                break
            place = above
    packaged = os.path.join(os.path.dirname(__file__), "constraints", f"{arch}.txt")
    return packaged if os.path.isfile(packaged) else None
