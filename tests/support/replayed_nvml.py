"""An NVML that answers as an H200's did (driver 580.159.04, 2026-11-16), and writes down what it is told to do."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As pynvml's."""


class NVMLError_NotSupported(NVMLError):
    """Recorded: of memory clocks, which cannot be locked there."""


class NVMLError_NoPermission(NVMLError):
    """Recorded elsewhere: without root."""

    def __str__(self) -> str:
        return "Insufficient Permissions"


class NVMLError_FunctionNotFound(NVMLError):
    """An old driver."""


class NVMLError_NotFound(NVMLError):
    """No such device."""


class ReplayedNvml:
    """`mig`: for each GPU the UUIDs of its instances. `refuses`: functions that need permission."""

    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported
    NVMLError_NoPermission = NVMLError_NoPermission
    NVMLError_FunctionNotFound = NVMLError_FunctionNotFound
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(
        self, log: Path | None = None, gpus: int = 1, mig: dict[int, list[str]] | None = None, refuses: str = ""
    ) -> None:
        self._log, self._gpus, self._mig, self._refuses = log, gpus, mig or {}, refuses

    def _did(self, what: str) -> None:
        if self._refuses and what.startswith(self._refuses):
            raise NVMLError_NoPermission
        if self._log is not None:
            with self._log.open("a") as file:
                file.write(f"{what}\n")

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return self._gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        return f"gpu{index}"

    def nvmlDeviceGetUUID(self, handle: str) -> str:
        return f"GPU-c4d8dfd1-80a0-c6c2-cbf4-c49e6d276ed{handle[-1]}"

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: str) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: str, index: int) -> str:
        instances = self._mig.get(int(handle[-1]), [])
        if index >= len(instances):
            raise NVMLError_NotFound
        return instances[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: Any) -> str:
        text = uuid.decode() if isinstance(uuid, bytes) else uuid
        if not any(text in instances for instances in self._mig.values()):
            raise NVMLError_NotFound
        return text

    def nvmlDeviceGetMaxClockInfo(self, handle: str, kind: int) -> int:
        return 1980

    def nvmlDeviceGetSupportedMemoryClocks(self, handle: str) -> list[int]:
        return [3201, 2201]

    def nvmlDeviceGetSupportedGraphicsClocks(self, handle: str, memory: int) -> list[int]:
        return list(range(1980, 344, -15))

    def nvmlDeviceSetGpuLockedClocks(self, handle: str, low: int, high: int) -> None:
        self._did(f"lock {handle} {low} {high}")

    def nvmlDeviceResetGpuLockedClocks(self, handle: str) -> None:
        self._did(f"unlock {handle}")

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> SimpleNamespace:
        if handle.startswith("MIG"):
            return SimpleNamespace(total=18_253_611_008, used=13_107_200, free=18_240_503_808)
        return SimpleNamespace(total=150_754_820_096, used=644_939_776, free=150_109_880_320)

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:
        if handle.startswith("MIG"):
            raise NVMLError_NotSupported
        return SimpleNamespace(gpu=98, memory=31)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 80_427

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:
        return 2_522_099

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: str) -> int:
        return 700_000

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return 345 if kind == self.NVML_CLOCK_SM else 3201

    def nvmlDeviceGetTemperature(self, handle: str, kind: int) -> int:
        return 32

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:
        return 1

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[SimpleNamespace]:
        return []

    def nvmlDeviceGetProcessUtilization(self, handle: str, since_us: int) -> list[SimpleNamespace]:
        raise NVMLError_NotFound
