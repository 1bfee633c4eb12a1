from __future__ import annotations

import pytest

from benchwright.core.comparison import Verdict
from benchwright.core.metric import Direction
from benchwright.regress.notify.notice import Finding, NoticeOutcome
from benchwright.regress.watch.notices import is_news, notice_of_commit
from benchwright.regress.watch.records import CommitOutcome, CommitRecord, EffectRecord, RunMade, RunType


def effect(verdict: Verdict = Verdict.REGRESSED, *, called: bool = False, since: str | None = None) -> EffectRecord:
    return EffectRecord(
        benchmark="bench",
        metric="time",
        labels={"op": "conv"},
        ratio=1.052,
        verdict=verdict,
        direction=Direction.LOWER,
        low=1.041,
        high=1.063,
        called=called,
        since=since,
    )


def record(outcome: CommitOutcome, *effects: EffectRecord, **more: object) -> CommitRecord:
    return CommitRecord(
        commit="a" * 40,
        commit_time="2026-11-16T00:00:00Z",
        subject="Slower",
        outcome=outcome,
        ended="2026-11-16T00:00:00Z",
        effects=effects,
        **more,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("made", "news"),
    [
        (record(CommitOutcome.REGRESSED, effect(called=True)), True),
        (record(CommitOutcome.REGRESSED, effect(called=True, since="b" * 40)), False),
        (record(CommitOutcome.BROKEN, broken=("bench: exit code 1",)), True),
        (record(CommitOutcome.BUILD_FAILED), True),
        (record(CommitOutcome.NOT_CONFIRMED, effect()), False),
        (record(CommitOutcome.SAME_COMMIT, effect()), False),
        (record(CommitOutcome.SAME, effect(Verdict.SAME)), False),
    ],
)
def test_what_is_news(made: CommitRecord, news: bool) -> None:
    assert is_news(made) is news


def test_a_regression_is_told_with_its_figures_its_control_and_its_runs() -> None:
    runs = tuple(RunMade(purpose=kind, run=f"r-{kind.value}") for kind in RunType)
    made = record(
        CommitOutcome.REGRESSED, effect(called=True), control="c" * 40, control_is="first commit of its week", runs=runs
    )
    notice = notice_of_commit(made, "app")
    assert notice.outcome is NoticeOutcome.REGRESSED
    assert notice.title == "app aaaaaaaaaa: regressed (Slower)"
    (verdict,) = notice.verdicts
    assert (verdict.benchmark, verdict.metric, verdict.text) == ("bench", "time [op conv]", "+5.2 % [+4.1, +6.3]")
    assert notice.details[0] == "compared with cccccccccc, the first commit of its week"
    assert "verify run: r-verify" in notice.details[1]


def test_what_was_not_called_is_no_regression_in_a_notice() -> None:
    for outcome in (CommitOutcome.NOT_CONFIRMED, CommitOutcome.SAME_COMMIT):
        notice = notice_of_commit(record(outcome, effect()), "app")
        assert (notice.outcome, notice.verdicts[0].verdict) == (NoticeOutcome.FINE, Finding.INCONCLUSIVE)


def test_a_failed_build_is_told_as_not_measured() -> None:
    made = record(CommitOutcome.BUILD_FAILED, notes=("it could not be built", "no rule"), log="/logs/build.log")
    notice = notice_of_commit(made, "app")
    assert notice.outcome is NoticeOutcome.NOT_MEASURED
    assert notice.verdicts[0].reason == "it could not be built; no rule"
    assert "/logs/build.log" in notice.details[-1]
