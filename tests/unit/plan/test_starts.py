"""Which processes are started warm."""

from __future__ import annotations

from typing import Any

import pytest
from builders import job as job_in

from benchwright.core.decision import Decision
from benchwright.core.job import Job, JobBarrier
from benchwright.core.settings import RunSettings
from benchwright.plan.starts import with_shared_starts


def job(id: str, **fields: Any) -> Job:
    return job_in("python", "-m", "benchmodels", f"{id}.py", id=id, **({"warm": ("torch",)} | fields))


def warm(*jobs: Job, **settings: Any) -> list[str]:
    launches = with_shared_starts([(each,) for each in jobs], RunSettings(**settings))
    return [each.id for (each,) in launches if each.warm]


def test_launches_that_can_share_a_start_are_warm():
    assert warm(job("a"), job("b"), job("c", warm=())) == ["a", "b"]


@pytest.mark.parametrize(
    "other",
    [{"env": {"OMP_NUM_THREADS": "1"}}, {"cores": (0,)}, {"cwd": "/elsewhere"}, {"argv": ("other",)}, {"repeat": 1}],
)
def test_a_launch_that_shares_its_start_with_none_is_cold(other):
    assert warm(job("a"), job("b"), job("c", **other)) == ["a", "b"]


def test_launches_of_a_benchmark_have_different_layouts():
    jobs = [(job(f"{name}{n}", repeat=n),) for n in range(6) for name in "ab"]
    launches = with_shared_starts(jobs, RunSettings(repeat=6))
    assert [each.layout for (each,) in launches if each.id.startswith("a")] == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize("settings", [{"cold": True}, {"decision": Decision()}, {"turn_s": 0.5}])
def test_nothing_is_warm_where_that_is_not_wanted(settings):
    assert warm(job("a"), job("b"), **settings) == []


def test_processes_that_run_together_are_cold():
    barrier = JobBarrier(folder="/f", size=2, rank=0)
    assert warm(job("a", barrier=barrier), job("b", barrier=barrier)) == []
    together = with_shared_starts([(job("a"), job("b")), (job("c"), job("d"))], RunSettings())
    assert [each.warm for launch in together for each in launch] == [(), (), (), ()]
