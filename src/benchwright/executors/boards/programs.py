"""Whether a program of this machine can run on a board of another kind."""

from __future__ import annotations

import os
import struct

from benchwright.core.job import Job

_MAGIC = b"\x7fELF"
# ELF's number of a processor → what `uname -m` says there.
_PROCESSORS = {
    3: ("i386", "i486", "i586", "i686", "x86_64"),
    40: ("arm", "armv6l", "armv7l", "armv8l", "aarch64"),
    62: ("x86_64", "amd64"),
    183: ("aarch64", "arm64"),
    243: ("riscv64", "riscv32"),
}


def why_not_runnable(job: Job, architecture: str) -> str | None:
    """Why the job's own program cannot run on a machine of that architecture; None if nothing is known against it."""
    program = os.path.join(job.cwd, job.argv[0]) if job.argv and "/" in job.argv[0] else ""
    try:
        with open(program, "rb") as file:
            head = file.read(20)
    except (OSError, ValueError):
        return None
    if len(head) < 20 or head[:4] != _MAGIC:
        return None
    (number,) = struct.unpack("<H" if head[5] == 1 else ">H", head[18:20])
    known = _PROCESSORS.get(number)
    if known is None or architecture in known:
        return None
    return f"{program} is a program for {known[0]}, the board is {architecture}; build it for the board"
