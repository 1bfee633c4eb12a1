"""The processor's energy counters, in a folder laid out like the kernel's."""

from __future__ import annotations

from pathlib import Path

from benchwright.agent.samplers.rapl import RaplSampler, packages


def domain(folder: Path, name: str, uj: int | None, full: int = 1_000_000) -> Path:
    made = folder / name
    made.mkdir()
    (made / "max_energy_range_uj").write_text(f"{full}\n")
    if uj is not None:
        (made / "energy_uj").write_text(f"{uj}\n")
    return made


def test_only_whole_packages_that_can_be_read_count(tmp_path: Path) -> None:
    domain(tmp_path, "intel-rapl:0", 5)
    domain(tmp_path, "intel-rapl:0:0", 3)  # its cores
    domain(tmp_path, "intel-rapl:1", None)
    domain(tmp_path, "intel-rapl-mmio:0", 5)
    assert packages(str(tmp_path)) == [str(tmp_path / "intel-rapl:0")]
    assert packages(str(tmp_path / "none")) == []


def test_a_counter_that_starts_again_at_zero_goes_on(tmp_path: Path) -> None:
    package = domain(tmp_path, "intel-rapl:0", 900_000)
    sampler = RaplSampler([str(package)])
    seen = []
    for uj in (900_000, 950_000, 50_000, 60_000):
        (package / "energy_uj").write_text(str(uj))
        [reading] = sampler.sample(0)
        assert reading.device is None
        seen.append(reading.values["package_j"])
    assert seen == [0.0, 0.05, 0.15, 0.16]


def test_several_packages_are_told_apart(tmp_path: Path) -> None:
    sampler = RaplSampler([str(domain(tmp_path, f"intel-rapl:{n}", n)) for n in range(2)])
    assert [reading.device for reading in sampler.sample(0)] == [0, 1]


def test_a_counter_that_goes_away_gives_nothing(tmp_path: Path) -> None:
    package = domain(tmp_path, "intel-rapl:0", 1)
    sampler = RaplSampler([str(package)])
    (package / "energy_uj").unlink()
    assert sampler.sample(0) == []
