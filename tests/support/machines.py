"""A machine for tests that need one but do not care which."""

from __future__ import annotations

from benchwright.core.machine import Machine

MACHINE = Machine(
    hostname="host",
    system="Linux",
    kernel="6.1",
    architecture="x86_64",
    cpu="processor",
    cores=2,
    cores_total=2,
    memory_bytes=1 << 33,
    python="3.11.7",
)
