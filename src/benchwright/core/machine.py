"""The machine of a run."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

ANDROID = "Android"  # the system of phones
UNKNOWN = "unknown"  # for what an imported result does not say; counts are then 0


_Cores = Annotated[int, Meta(ge=0, le=1 << 20)]
_Bytes = Annotated[int, Meta(ge=0, le=1 << 62)]


class Accelerator(msgspec.Struct, frozen=True, kw_only=True):
    index: Annotated[int, Meta(ge=0, le=1 << 16)]
    name: str
    memory_bytes: _Bytes | None = None
    uuid: str | None = None
    driver: str | None = None
    compute: float | None = None  # CUDA's compute capability, such as 9.0


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A node: what it is made of and which software it runs."""

    hostname: str
    system: str
    kernel: str
    architecture: str
    cpu: str
    cores: _Cores  # those this process may use
    cores_total: _Cores
    memory_bytes: _Bytes
    python: str
    accelerators: tuple[Accelerator, ...] = ()
    cpu_governor: str | None = None
    virtual: str | None = None  # hypervisor or container, if detected
    platform: str | None = None  # its name among devices and in records of tests

    @property
    def known(self) -> bool:
        """Whether enough is known to tell if two results come from machines of the same kind."""
        return self.cpu != UNKNOWN and self.cores_total > 0

    @property
    def fingerprint(self) -> str:
        """Equal for machines whose results can be compared; names and Python are not part of it."""
        import hashlib

        parts = [self.system, self.architecture, self.cpu, self.cores, self.cores_total, self.memory_bytes >> 28]
        parts += [(a.name, a.memory_bytes) for a in self.accelerators]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def platform_name(text: str) -> str:
    """`text` as the name of a platform, which folders are called after."""
    return re.sub(r"[^A-Za-z0-9_.-]", "", re.sub(r"[ /]", "-", text))


def with_gpus(machine: Machine, count: int) -> Machine:
    """The machine as if it had that many GPUs: its own first, then others like its last."""
    own = machine.accelerators[:count]
    other = own[-1] if own else Accelerator(index=0, name="assumed GPU")
    more = (msgspec.structs.replace(other, index=index, uuid=None) for index in range(len(own), count))
    return msgspec.structs.replace(machine, accelerators=(*own, *more))
