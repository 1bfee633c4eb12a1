"""Which processes are started warm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import job as job_in
from msgspec.structs import replace

from benchwright.core.decision import Decision
from benchwright.core.job import Job, JobBarrier, JobTurn
from benchwright.options.table import Options
from benchwright.plan.starts import overlap_notes, with_shared_starts, with_turns_ahead
from benchwright.plan.turns import started_together
from benchwright.runner.prebuild import still_to_launch


def job(id: str, **fields: Any) -> Job:
    return job_in("python", "-m", "benchmodels", f"{id}.py", id=id, **({"warm": ("torch",)} | fields))


def warm(*jobs: Job, **options: Any) -> list[str]:
    launches = with_shared_starts([(each,) for each in jobs], Options(**options))
    return [each.id for (each,) in launches if each.warm]


def test_launches_that_can_share_a_start_are_warm():
    assert warm(job("a"), job("b"), job("c", warm=())) == ["a", "b"]


@pytest.mark.parametrize(
    "other",
    [{"env": {"OMP_NUM_THREADS": "1"}}, {"cores": (0,)}, {"cwd": "/elsewhere"}, {"argv": ("other",)}, {"launch": 1}],
)
def test_a_launch_that_shares_its_start_with_none_is_cold(other):
    assert warm(job("a"), job("b"), job("c", **other)) == ["a", "b"]


def test_one_of_a_run_that_goes_on_is_warm():
    [[found]] = with_shared_starts([(job("a"),)], Options(), goes_on=True)
    assert found.warm == ("torch",)


def test_launches_of_a_benchmark_have_different_layouts():
    jobs = [(job(f"{name}{n}", launch=n),) for n in range(6) for name in "ab"]
    launches = with_shared_starts(jobs, Options(repeat=6))
    assert [each.layout for (each,) in launches if each.id.startswith("a")] == [0, 1, 2, 3, 0, 1]


@pytest.mark.parametrize("options", [{"cold": True}, {"decision": Decision()}, {"turns": 0.5}])
def test_nothing_is_warm_where_that_is_not_wanted(options):
    assert warm(job("a"), job("b"), **options) == []


def test_processes_that_run_together_are_cold():
    barrier = JobBarrier(folder="/f", size=2, rank=0)
    assert warm(job("a", barrier=barrier), job("b", barrier=barrier)) == []
    together = with_shared_starts([(job("a"), job("b")), (job("c"), job("d"))], Options())
    assert [each.warm for launch in together for each in launch] == [(), (), (), ()]


def ahead(count: int, cores: int, **fields: Any) -> list[Job]:
    turn = JobTurn(folder="/f/.barrier/ahead")
    launches = [(job(f"m{n}", **({"turn": turn} | fields)),) for n in range(count)]
    return [each for (each,) in with_turns_ahead(launches, range(cores))]


def test_launches_that_start_early_have_the_other_half_of_the_cores():
    found = ahead(34, 9)
    assert {(each.cores, each.turn and each.turn.cores) for each in found} == {((5, 6, 7, 8), (0, 1, 2, 3))}
    assert [each.turn and each.turn.place for each in found] == [*range(34)]
    groups = started_together([(each,) for each in found])
    assert [len(group) for group in groups] == [34]


def test_those_of_one_library_start_early_one_after_another():
    turn = JobTurn(folder="/f/.barrier/ahead")
    made = [(n, zoo) for n in range(2) for zoo in ("timm", "torchvision", "timm", "torchvision")]
    jobs = [(job(f"{zoo}{place}", launch=n, warm=(zoo,), turn=turn),) for place, (n, zoo) in enumerate(made)]
    found = [each for (each,) in with_turns_ahead(jobs, range(8))]
    assert [each.id[-1] for each in found] == ["0", "2", "1", "3", "4", "6", "5", "7"]
    assert [each.position for each in found] == [*range(8)]


@pytest.mark.parametrize(("cores", "fields"), [(7, {}), (8, {"cooldown_s": 1.0}), (8, {"turn": None})])
def test_with_few_cores_or_a_launch_that_must_be_alone_none_starts_early(cores, fields):
    assert all(each.turn is None and each.cores is None for each in ahead(3, cores, **fields))


@pytest.mark.parametrize(("cores", "overlap", "said"), [(8, True, 0), (7, True, 1), (7, False, 0)])
def test_overlap_that_does_nothing_is_told(cores, overlap, said):
    launches = [(each,) for each in ahead(3, cores)]
    notes = overlap_notes(launches, Options(overlap=overlap))
    assert ["--overlap has no effect here" in note.text for note in notes] == [True] * said


def test_only_what_was_not_measured_yet_is_launched_again(tmp_path):
    found = ahead(4, 8, turn=JobTurn(folder=str(tmp_path / "ahead")))
    group = [(replace(each, stream=str(tmp_path / f"{each.id}.data")),) for each in found]
    Path(group[1][0].stream).write_text('{"event":"end","t":1,"exit_code":0}\n')
    (tmp_path / "ahead").mkdir()
    (tmp_path / "ahead" / "quiet-2").write_text("1")  # of the run that was interrupted
    assert still_to_launch(group) == [group[0], group[2], group[3]]
    assert not list((tmp_path / "ahead").iterdir())
