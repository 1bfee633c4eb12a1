"""NVIDIA's management library, if there is one."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

# Checked before the library is loaded: machines without a GPU should not pay for the import.
_SIGNS_OF_A_DRIVER = ("/dev/nvidiactl", "/proc/driver/nvidia", "/dev/dxg")


def open_nvml() -> Any | None:
    """The module pynvml, initialised; None if this machine has no NVIDIA driver, or it does not answer."""
    if not any(map(os.path.exists, _SIGNS_OF_A_DRIVER)):
        return None
    import ctypes

    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # a library of another version fails in its own ways; all mean "no GPU can be read"
        return None
    return pynvml


def find_handles(nvml: Any, devices: Sequence[str] | None) -> list[Any]:
    """Handles of the accelerators called `devices` (indices, UUIDs or instances of MIG, as CUDA has them), or of all.

    Stops at the first that does not exist, as CUDA does.
    """
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if devices is None:
        return handles
    chosen = []
    for token in devices:
        if token.isdigit():
            match = handles[int(token)] if int(token) < len(handles) else None
        elif token.startswith("MIG-"):
            match = _instance(nvml, token)
        else:
            match = next((h for h in handles if as_text(nvml.nvmlDeviceGetUUID(h)).startswith(token)), None)
        if match is None:
            break
        chosen.append(match)
    return chosen


def _instance(nvml: Any, uuid: str) -> Any | None:
    """An instance of a GPU that was divided (MIG); the driver wants its whole UUID."""
    try:
        return nvml.nvmlDeviceGetHandleByUUID(uuid)
    except (nvml.NVMLError, AttributeError):  # no such instance, or a binding too old to know them
        return None


def as_text(value: str | bytes) -> str:
    """Old versions of pynvml return bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def throttle_bits(nvml: Any, handle: object) -> int:
    """Why its clock is held down. The driver renamed throttle reasons to event reasons; old bindings have the old name."""
    read = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    return int((read or nvml.nvmlDeviceGetCurrentClocksThrottleReasons)(handle))
