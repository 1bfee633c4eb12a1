"""GPUs of AMD, through its library amdsmi, and of Intel, through the kernel's files."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_AMD_DRIVER = "/dev/kfd"
DRM = "/sys/class/drm"
_INTEL = "0x8086"
_INTEL_DRIVERS = ("xe", "i915")


def open_amdsmi() -> Any | None:
    """The module amdsmi, initialised; None if this machine has no AMD GPU, or its library does not answer."""
    if not os.path.exists(_AMD_DRIVER):
        return None
    try:
        from importlib import import_module

        amdsmi: Any = import_module("amdsmi")
        amdsmi.amdsmi_init()
    except Exception:  # a library of another version fails in its own ways; all mean "no GPU can be read"
        return None
    return amdsmi


def amd_handles(smi: Any, devices: Sequence[str] | None) -> list[Any]:
    """Handles of the GPUs called `devices` (indices or UUIDs, as HIP and ROCr have them), or of all."""
    handles = list(smi.amdsmi_get_processor_handles())
    return chosen(handles, devices, lambda handle: str(smi.amdsmi_get_gpu_device_uuid(handle)))


def amd_gpus(smi: Any) -> list[dict[str, Any]]:
    """Name, memory, UUID and driver of each; empty if the library fails."""
    try:
        return [
            {
                "name": _amd_name(smi.amdsmi_get_gpu_asic_info(handle)),
                "memory_bytes": int(smi.amdsmi_get_gpu_vram_usage(handle)["vram_total"]) << 20,
                "uuid": str(smi.amdsmi_get_gpu_device_uuid(handle)),
                "driver": str(smi.amdsmi_get_gpu_driver_info(handle)["driver_version"]),
            }
            for handle in smi.amdsmi_get_processor_handles()
        ]
    except smi.AmdSmiException:
        return []


def _amd_name(info: dict[str, Any]) -> str:
    name = str(info["market_name"])
    return name if name.startswith("AMD") else f"AMD {name}"


def intel_gpus(drm: str = DRM) -> list[dict[str, Any]]:
    """The kernel knows the number of the model only."""
    return [{"name": f"Intel GPU {_text(f'{card}/device/device') or ''}".strip()} for card in intel_cards(None, drm)]


def intel_cards(devices: Sequence[str] | None, drm: str = DRM) -> list[str]:
    """Folders of Intel's discrete GPUs, in the kernel's order; integrated ones lack the energy counter."""
    try:
        names = sorted((name for name in os.listdir(drm) if name[4:].isdigit()), key=lambda name: int(name[4:]))
    except OSError:
        return []
    cards = [f"{drm}/{name}" for name in names if name.startswith("card")]
    ours = [card for card in cards if _text(f"{card}/device/vendor") == _INTEL and hwmon(card) is not None]
    return chosen(ours, devices, lambda card: "")


def hwmon(card: str) -> str | None:
    """The folder of its sensors."""
    folder = f"{card}/device/hwmon"
    try:
        found = [f"{folder}/{name}" for name in sorted(os.listdir(folder))]
    except OSError:
        return None
    return next((each for each in found if _text(f"{each}/name") in _INTEL_DRIVERS), None)


def chosen(all_: list[Any], tokens: Sequence[str] | None, uuid_of: Any) -> list[Any]:
    """GPUs that the tokens name, by number or by the beginning of a UUID; stops at the first that does not exist."""
    if tokens is None:
        return all_
    found = []
    for token in tokens:
        if token.isdigit():
            match = all_[int(token)] if int(token) < len(all_) else None
        else:
            bare = token.removeprefix("GPU-").lower()
            match = next((x for x in all_ if bare and bare in str(uuid_of(x)).lower()), None)
        if match is None:
            break
        found.append(match)
    return found


def _text(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace").strip()
    except OSError:
        return None


def number(path: str) -> float | None:
    """The number in a file of the kernel; None if there is none."""
    text = _text(path)
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
