"""run.json is written as a run grows, and costs little of its time."""

from pathlib import Path

from builders import run

from benchwright.core.run import Run
from benchwright.executors.observer import Observer
from benchwright.runner.recorder import RunWriter
from benchwright.runs.run_folder import RunFolder


class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _writes_that_take(seconds: float, folder: Path, during_s: float = 1000) -> int:
    """How often a run of launches of 0.1 s writes, if assembling it takes so long."""
    clock, writes = _Clock(), 0
    writer = RunWriter(RunFolder(folder), Observer(), clock)

    def assembled() -> Run:
        clock.now += seconds
        return run()

    while clock.now < 100 + during_s:
        clock.now += 0.1
        if writer.is_due:
            writer.write(assembled, "running")
            writes += 1
    return writes


def test_a_small_run_is_written_every_two_seconds(tmp_path: Path) -> None:
    assert 400 <= _writes_that_take(0.001, tmp_path) <= 500
    assert (tmp_path / "run.json").exists()


def test_writing_a_large_run_takes_two_percent_of_its_time(tmp_path: Path) -> None:
    writes = _writes_that_take(1.5, tmp_path)
    assert 0.015 <= writes * 1.5 / 1000 <= 0.0215
