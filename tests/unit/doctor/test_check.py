from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from benchwright.core.job import Outcome
from benchwright.doctor import check as doctor
from benchwright.executors.fake import FakeExecutor
from benchwright.runner.run import RunOrder, run
from benchwright.runs.base_folder import BaseFolder


def measured_by(executor: FakeExecutor) -> doctor.Measure:
    """As the command does, with launches that are faked."""
    return lambda options, base: run(RunOrder(options=replace(options, no_store=True), base=base), executor=executor)


NAMES = {"python", "python-2"}  # how two equal commands are called


def test_where_launches_fail_the_noise_is_not_measured_and_that_is_bad():
    noise, notes = doctor.measure_noise(
        measured_by(FakeExecutor({}, outcomes={name: Outcome(job="", exit_code=9) for name in NAMES}))
    )
    assert noise == []
    (note,) = notes
    assert (note.kind, note.severity) == ("noise.launches", "error")
    assert "exit code 9" in note.text
    assert note.remedy


def test_equal_launches_alternate_and_stand_in_pairs():
    executor = FakeExecutor({})
    doctor.measure_noise(measured_by(executor))
    measured = [job.partition(".")[0] for job in executor.ran]
    assert len(measured) == 2 + 2 * doctor.PAIRS
    assert all({a, b} == NAMES for a, b in zip(measured[::2], measured[1::2], strict=True))


def test_a_quick_checkup_launches_nothing(tmp_path: Path):
    executor = FakeExecutor({})
    checkup = doctor.check(BaseFolder(tmp_path), executor=executor, measure=None)
    assert executor.ran == []
    assert checkup.noise == ()
    assert checkup.machine == executor.machine()
    assert {"cpu", "memory", "disk", "runtime", "sampler"} <= {
        (note.kind or "").partition(".")[0] for note in checkup.notes
    }
