"""A launch of several jobs counts whole or not at all."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.launches import only_whole
from benchwright.core.run import Launch, culprit
from benchwright.core.status import Reason, Status


def job(
    name: str, status: Status = Status.OK, *, at: int = 0, reason: Reason | None = None, detail: str = ""
) -> Launch:
    return Launch(job=name, status=status, position=at, reason=reason, detail=detail or None)


def test_a_job_that_ran_beside_a_dead_one_does_not_count_and_says_which_and_why() -> None:
    dead = job("b.D1", Status.FAILED, reason=Reason.CRASHED, detail="exit code 3")
    fine, same = only_whole([job("b.D0"), dead])
    assert same is dead
    assert (fine.status, fine.reason) == (Status.FAILED, Reason.PARTNER_FAILED)
    assert fine.detail == "does not count: b.D1, which ran alongside, failed (crashed: exit code 3)"
    assert culprit([fine, dead]) is dead


def test_how_a_silent_worker_ends_does_not_matter_once_the_others_were_measured_enough() -> None:
    crashed = {"status": Status.FAILED, "reason": Reason.CRASHED, "detail": "exit code 1"}
    silent = Launch(job="b.n1.nolog", facts={"reports": False}, **crashed)
    enough = Launch(job="b.n0", status=Status.OK, facts={"reported": {"early_stop": True}})
    first, second = only_whole([enough, silent])
    assert (first.counts, second.status, second.counts) == (True, Status.OK, False)
    for other in (job("b.n0"), Launch(job="b.n0", facts=enough.facts, **crashed)):
        assert [x.status for x in only_whole([other, silent])] == [Status.FAILED, Status.FAILED]


def test_launches_of_other_positions_are_left_alone() -> None:
    fine = [job("b.R0.D0", at=0), job("b.R0.D1", at=0)]
    dead = [job("b.R1.D0", at=1), job("b.R1.D1", Status.FAILED, at=1)]
    marked = only_whole([*fine, *dead])
    assert [x.status for x in marked] == [Status.OK, Status.OK, Status.FAILED, Status.FAILED]


def test_a_job_whose_partner_is_missing_or_was_stopped_is_unfinished_too() -> None:
    [alone] = only_whole([job("b.D0")], {0: 2})
    assert (alone.status, alone.reason) == (Status.INTERRUPTED, Reason.STOPPED)
    stopped, _ = only_whole([job("b.D0"), job("b.D1", Status.INTERRUPTED)])
    assert stopped.detail == "does not count: b.D1 of the same launch did not finish"


STATUSES = st.sampled_from([Status.OK, Status.FAILED, Status.INTERRUPTED])


@given(st.lists(st.tuples(st.integers(0, 3), STATUSES), max_size=12))
def test_a_position_has_only_jobs_that_count_or_none(drawn: list[tuple[int, Status]]) -> None:
    launches = [job(f"j{n}", status, at=at) for n, (at, status) in enumerate(drawn)]
    marked = only_whole(launches)
    for at in range(4):
        before = {x.status for x in launches if x.position == at}
        after = {x.status for x in marked if x.position == at}
        assert (Status.OK in after) == (before == {Status.OK})
