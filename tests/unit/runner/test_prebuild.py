"""What the next launches measure is built before them, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import job as job_in

from benchwright.core.job import Job, JobBuild, Outcome
from benchwright.executors.base import Listener
from benchwright.executors.fake import FakeExecutor
from benchwright.executors.observer import Observer
from benchwright.record import is_complete
from benchwright.runner.prebuild import BuildsAhead


class Noting(FakeExecutor):
    """Also notes which jobs it is given together."""

    def __init__(self, **given: Any) -> None:
        super().__init__({name: [1.0] for name in ("a", "b", "c", "fine")}, **given)
        self.given: list[list[str]] = []

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        assert all(job.probe == {"only": True} and job.warm == ("torch",) for job in jobs)
        self.given.append([job.id for job in jobs])
        return super().run(jobs, listener)


def launches(folder: Path, *names: str, **fields: Any) -> list[tuple[Job, ...]]:
    build = JobBuild(probe={"only": True}, warm=("torch",))
    return [(job_in(folder=folder, id=name, **({"build": build} | fields)),) for name in names]


def builds(folder: Path, executor: FakeExecutor, most: int | None = 2, cores: int = 2) -> BuildsAhead:
    return BuildsAhead(folder, executor, Observer(), most, cores)


def test_they_are_built_together_and_each_once(tmp_path):
    planned = launches(tmp_path, "a", "b", "c")
    with Noting() as executor:
        ahead = builds(tmp_path, executor)
        ready = [ahead.ready([launch], planned) for launch in planned]
    assert executor.given == [["a", "b"], ["c"]]
    built = [job.built for [[job]] in ready]
    assert [each and each.beside for each in built] == [2, 2, 1]
    assert not any(is_complete(job.stream) for [job] in planned)


def test_how_a_build_failed_is_how_its_launch_failed(tmp_path):
    planned = launches(tmp_path, "fine", "bad")
    with Noting(outcomes={"bad": Outcome(job="", exit_code=3)}) as executor:
        ahead = builds(tmp_path, executor)
        assert [job.id for [job] in ahead.ready(planned[:1], planned)] == ["fine"]
        assert is_complete(planned[1][0].stream)
        assert ahead.ready(planned[1:], planned) == []
    assert executor.given == [["fine", "bad"]]


def test_one_alone_is_built_by_the_process_that_measures_it_unless_others_were_before(tmp_path):
    with Noting() as executor:
        ahead = builds(tmp_path, executor)
        first, second = launches(tmp_path, "a"), launches(tmp_path, "b")
        [[job]] = ahead.ready(first, first)
        assert (job.built, executor.given) == (None, [])
        ahead.ready(second, second)
        assert executor.given == [["b"]]


def test_what_was_measured_or_needs_no_build_is_not_built(tmp_path):
    planned = launches(tmp_path, "a", "b", "done") + launches(tmp_path, "eager", build=None)
    Path(planned[2][0].stream).write_text('{"event":"end","t":1,"exit_code":0}\n')
    with Noting() as executor:
        ahead = builds(tmp_path, executor, most=8)
        ahead.ready(planned[3:], planned)
        assert executor.given == []
        ahead.ready(planned[:1], planned)
    assert executor.given == [["a", "b"]]


@pytest.mark.parametrize(("cores", "together"), [(2, 1), (4, 1), (8, 2)])
def test_as_many_at_a_time_as_the_cores_allow(tmp_path, cores, together):
    planned = launches(tmp_path, "a", "b", "c")
    with Noting() as executor:
        builds(tmp_path, executor, most=None, cores=cores).ready(planned[:1], planned)
    assert [len(jobs) for jobs in executor.given] == [together]


def test_after_a_stop_nothing_counts_as_failed(tmp_path):
    planned = launches(tmp_path, "a", "b")
    with Noting() as executor:
        executor.stop()
        [[job]] = builds(tmp_path, executor).ready(planned[:1], planned)
    assert job.built is None
    assert not is_complete(job.stream)
