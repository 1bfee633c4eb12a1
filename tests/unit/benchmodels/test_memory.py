"""Peak memory on a device, by phase, with a torch that says what it allocated."""

from __future__ import annotations

import pytest

from benchmodels.measure import memory


class Cuda:
    """As `torch.cuda` keeps its peaks."""

    def __init__(self) -> None:
        self.now = self.peak = 0

    def allocate(self, size: int) -> None:
        self.now += size
        self.peak = max(self.peak, self.now)

    def max_memory_allocated(self) -> int:
        return self.peak

    def reset_peak_memory_stats(self) -> None:
        self.peak = self.now

    def memory_reserved(self) -> int:
        return 1000

    def memory_stats(self) -> dict[str, int]:
        return {"inactive_split_bytes.all.current": 250}

    def mem_get_info(self) -> tuple[int, int]:
        return 6000, 8000


def test_each_phase_has_its_own_peak_and_the_whole_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = Cuda()
    monkeypatch.setattr(memory, "used_cuda", lambda: cuda)
    peak = memory.PeakMemory()
    cuda.allocate(100)
    peak.end_phase("load")
    cuda.allocate(700)
    cuda.allocate(-700)
    peak.end_phase("first call")
    cuda.allocate(50)
    peak.end_phase("measured")
    assert peak.device_phases == {"load": 100, "first call": 800, "measured": 150}
    assert peak.device_bytes() == 800, "although the peak was reset since"


def test_torch_and_the_driver_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "used_cuda", Cuda)
    view = memory.PeakMemory().device_view(alone=True)
    assert view == {"memory.device_reserved": 1000, "memory.device_driver": 2000, "memory.device_fragmentation": 0.25}
    assert "memory.device_driver" not in memory.PeakMemory().device_view(alone=False), "a neighbour has a context there"


def test_without_a_device_there_is_nothing_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "used_cuda", lambda: None)
    peak = memory.PeakMemory()
    peak.end_phase("load")
    assert (peak.device_phases, peak.device_view(alone=True), peak.device_bytes()) == ({}, {}, None)
