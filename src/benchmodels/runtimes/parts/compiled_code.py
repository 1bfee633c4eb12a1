"""Compiled code: the hardware it is specific to, the compiler that links it, and torch's cache of it.

torch trusts this cache: a library cut short by a full disk or a crash kills it, or makes it assume a processor without
vector instructions and silently compile slow code.
"""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import struct
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import List, Set

VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
SETTLED_S = 10.0  # a file written to more recently may be incomplete
USES_LOCALE = '#include <locale>\nextern "C" int length() { return int(std::locale().name().size()); }\n'
CXX_LIBRARIES = (b"libstdc++.so", b"libc++.so")


def cpu_kind() -> str:
    """A digest of the processor's features; the same on machines that can share compiled code."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            flags = next((line for line in file if line.startswith(("flags", "Features"))), "")
    except OSError:
        flags = platform.processor()
    return f"{platform.machine()} {hashlib.sha256(flags.encode()).hexdigest()[:12]}"


def gpu_models() -> List[str]:
    """GPU models, as the driver names them."""
    found: Set[str] = set()
    for path in glob.glob("/proc/driver/nvidia/gpus/*/information"):
        with open(path, encoding="utf-8", errors="replace") as file:
            found.update(line.partition(":")[2].strip() for line in file if line.startswith("Model:"))
    return sorted(found)


@cache
def copies_cxx_library(compiler: str) -> bool:
    """Whether libraries it links contain their own C++ runtime. With two of them in one process, torch's code crashes."""
    if sys.platform != "linux":
        return False
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "locale.cpp"), Path(folder, "locale.so")
        source.write_text(USES_LOCALE)
        command = [compiler, "-shared", "-fPIC", str(source), "-o", str(library)]
        try:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return False  # torch will say what is wrong with it
        return not any(name in library.read_bytes() for name in CXX_LIBRARIES)


def remove_damaged() -> List[str]:
    """Removes truncated libraries, which torch then compiles again; returns their names."""
    folder = os.environ.get(VARIABLE)
    removed = []
    for path in sorted(Path(folder).rglob("*.so")) if folder else ():
        try:
            if time.time() - path.stat().st_mtime > SETTLED_S and not is_whole(path):
                path.unlink()
                removed.append(path.name)
        except OSError:  # removed by another process
            continue
    return removed


def is_whole(path: Path) -> bool:
    """Whether an ELF library ends where its header says."""
    with open(path, "rb") as file:
        header = file.read(64)
    if len(header) < 64 or header[:5] != b"\x7fELF\x02":
        return header[:4] == b"\x7fELF" and len(header) == 64  # 32-bit: not checked
    order = "<" if header[5] == 1 else ">"
    (sections_at,) = struct.unpack_from(f"{order}Q", header, 0x28)
    size, count = struct.unpack_from(f"{order}HH", header, 0x3A)
    ends_at: int = sections_at + size * count
    return path.stat().st_size >= ends_at
