from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from benchwright.core.comparison import Verdict
from benchwright.core.errors import CannotMeasure
from benchwright.core.metric import Direction
from benchwright.regress.watch.examination import Examined, Measured, examine
from benchwright.regress.watch.records import CommitOutcome, EarlierCall, EffectKey, EffectRecord, RunType

BAD, GOOD, SAME, UNCLEAR = Verdict.REGRESSED, Verdict.IMPROVED, Verdict.SAME, Verdict.INCONCLUSIVE


def effect(
    verdict: Verdict,
    ratio: float = 1.05,
    metric: str = "time",
    direction: Direction = Direction.LOWER,
    half: float = 0.01,
) -> EffectRecord:
    return EffectRecord(
        benchmark="loop",
        metric=metric,
        ratio=ratio,
        verdict=verdict,
        direction=direction,
        low=ratio - half,
        high=ratio + half,
    )


class Scripted:
    """Measures what it was told, one after the other."""

    def __init__(self, *results: Measured | CannotMeasure | Sequence[EffectRecord]) -> None:
        self.results = list(results)
        self.asked: list[tuple[RunType, tuple[EffectKey, ...]]] = []

    def __call__(self, run_type: RunType, regressed: tuple[EffectKey, ...]) -> Measured:
        self.asked.append((run_type, regressed))
        found = self.results.pop(0)
        if isinstance(found, CannotMeasure):
            raise found
        return found if isinstance(found, Measured) else Measured(run=f"run{len(self.asked)}", effects=tuple(found))

    @property
    def types(self) -> list[str]:
        return [run_type.value for run_type, _ in self.asked]


def examined(
    measure: Scripted, known: Mapping[EffectKey, EarlierCall] | None = None, same_commit: bool = False
) -> Examined:
    found = examine(measure, known or {}, same_commit=same_commit)
    assert measure.results == []
    return found


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([SAME], CommitOutcome.SAME),
        ([SAME, SAME], CommitOutcome.SAME),
        ([SAME, UNCLEAR], CommitOutcome.INCONCLUSIVE),
        ([UNCLEAR, GOOD], CommitOutcome.IMPROVED),
        ([], CommitOutcome.INCONCLUSIVE),
    ],
)
def test_what_does_not_look_bad_is_measured_once(verdicts: list[Verdict], outcome: CommitOutcome) -> None:
    measure = Scripted([effect(verdict, metric=str(i)) for i, verdict in enumerate(verdicts)])
    assert examined(measure).outcome is outcome
    assert measure.types == ["benchmark"]


def test_what_is_compared_beside_does_not_make_a_commit_inconclusive_but_may_regress() -> None:
    memory = msgspec.structs.replace(effect(UNCLEAR, metric="memory"), beside=True)
    assert examined(Scripted([effect(SAME), memory])).outcome is CommitOutcome.SAME
    worse = [effect(SAME), msgspec.structs.replace(memory, verdict=BAD)]
    assert examined(Scripted(worse, worse, worse)).outcome is CommitOutcome.REGRESSED


def test_what_looks_bad_twice_is_called_with_the_figures_of_a_third_run() -> None:
    measure = Scripted([effect(BAD, 1.09)], [effect(BAD, 1.07)], [effect(BAD, 1.05)])
    found = examined(measure)
    assert found.outcome is CommitOutcome.REGRESSED
    assert measure.types == ["benchmark", "verify", "regress"]
    assert measure.asked[2][1] == (("loop", "time", ()),)
    assert [(e.ratio, e.called) for e in found.effects] == [(1.05, True)]
    assert [(made.purpose.value, made.run) for made in found.runs] == [
        ("benchmark", "run1"),
        ("verify", "run2"),
        ("regress", "run3"),
    ]


@pytest.mark.parametrize("second", [SAME, UNCLEAR, GOOD])
def test_what_looks_bad_only_once_is_not_called(second: Verdict) -> None:
    measure = Scripted([effect(BAD)], [effect(second)])
    found = examined(measure)
    assert found.outcome is CommitOutcome.NOT_CONFIRMED
    assert not any(e.called for e in found.effects)
    assert "loop: time" in found.notes[-1]


def test_another_metric_that_looks_bad_the_second_time_confirms_nothing() -> None:
    measure = Scripted(
        [effect(BAD, metric="a"), effect(SAME, metric="b")], [effect(SAME, metric="a"), effect(BAD, metric="b")]
    )
    found = examined(measure)
    assert found.outcome is CommitOutcome.NOT_CONFIRMED
    assert not any(e.called for e in found.effects)


def test_a_third_run_that_disagrees_is_said_and_the_call_stands() -> None:
    found = examined(Scripted([effect(BAD)], [effect(BAD)], [effect(UNCLEAR, 1.01)]))
    assert found.outcome is CommitOutcome.REGRESSED
    assert "two runs out of three" in found.notes[-1]


def test_a_third_run_that_fails_leaves_the_figures_of_the_second() -> None:
    found = examined(Scripted([effect(BAD, 1.09)], [effect(BAD, 1.07)], CannotMeasure("the disk is full")))
    assert (found.outcome, found.effects[0].ratio) == (CommitOutcome.REGRESSED, 1.07)
    assert "the disk is full" in found.notes[-1]


@pytest.mark.parametrize("results", [[CannotMeasure("no")], [[effect(BAD)], CannotMeasure("no")]])
def test_a_failure_to_measure_or_to_verify_is_no_result(
    results: list[CannotMeasure | Sequence[EffectRecord]],
) -> None:
    with pytest.raises(CannotMeasure):
        examine(Scripted(*results), {})


def test_the_same_commit_is_never_called() -> None:
    measure = Scripted([effect(BAD)])
    found = examined(measure, same_commit=True)
    assert found.outcome is CommitOutcome.SAME_COMMIT
    assert "+5.0%" in found.notes[0]
    assert measure.types == ["benchmark"]


def known(ratio: float = 1.05, direction: Direction = Direction.LOWER) -> dict[EffectKey, EarlierCall]:
    called = effect(BAD, ratio, direction=direction)
    return {called.key: EarlierCall(commit="c" * 40, effect=called)}


def test_what_was_called_before_is_not_called_again() -> None:
    measure = Scripted([effect(BAD, 1.055)])
    found = examined(measure, known(1.05))
    assert (found.outcome, found.effects[0].since) == (CommitOutcome.REGRESSED, "c" * 40)
    assert measure.types == ["benchmark"]


@pytest.mark.parametrize(("direction", "before", "now"), [(Direction.LOWER, 1.05, 1.2), (Direction.HIGHER, 0.95, 0.8)])
def test_what_was_called_before_and_got_worse_is_called_again(direction: Direction, before: float, now: float) -> None:
    bad = [effect(BAD, now, direction=direction)]
    measure = Scripted(bad, bad, bad)
    found = examined(measure, known(before, direction))
    assert (found.effects[0].called, found.effects[0].since) == (True, None)
    assert measure.types == ["benchmark", "verify", "regress"]


def test_a_program_that_fails_twice_in_the_treatment_only_is_broken() -> None:
    broken = {"loop": "exit code 1"}
    measure = Scripted(Measured(run="a", broken=broken), Measured(run="b", broken=broken))
    found = examined(measure)
    assert (found.outcome, found.broken) == (CommitOutcome.BROKEN, ("loop: exit code 1",))
    assert measure.types == ["benchmark", "verify"]


def test_a_program_that_fails_once_is_not_broken() -> None:
    measure = Scripted(Measured(run="a", broken={"loop": "exit code 1"}), [effect(SAME)])
    assert examined(measure).outcome is CommitOutcome.NOT_CONFIRMED


def test_a_control_that_cannot_be_measured_is_said() -> None:
    found = examined(Scripted(Measured(run="a", control_broken={"loop": "exit code 1"})))
    assert found.control_broken == ("loop: exit code 1",)


def test_a_control_that_fails_in_one_of_several_benchmarks_still_judges_the_others() -> None:
    measure = Scripted(Measured(run="a", effects=(effect(SAME),), control_broken={"other": "exit code 1"}))
    found = examined(measure)
    assert (found.outcome, found.control_broken) == (CommitOutcome.SAME, ())
    assert "other: exit code 1" in found.notes[-1]


def chances(bad: float, commits: int, seed: int) -> tuple[float, list[float]]:
    """The share of commits that are called, and the ratios of those, if a run looks bad with chance `bad` and its ratio is
    larger the worse it looks."""
    draw, called = random.Random(seed), []
    for _ in range(commits):

        def measure(run_type: RunType, regressed: tuple[EffectKey, ...]) -> Measured:
            looks = draw.random()
            verdict = BAD if looks < bad else UNCLEAR
            return Measured(run="r", effects=(effect(verdict, 1.05 + 0.02 * (0.5 - looks)),))

        found = examine(measure, {})
        if found.outcome is CommitOutcome.REGRESSED:
            called.append(found.effects[0].ratio)
    return len(called) / commits, called


def test_false_alarms_of_single_runs_are_called_a_hundred_times_less_often() -> None:
    share, _ = chances(bad=0.01, commits=20_000, seed=1)
    assert share <= 0.0005  # expected: 0.0001; of single runs: 0.01


def test_a_slow_down_that_a_run_sees_is_called_and_its_size_is_not_exaggerated() -> None:
    share, ratios = chances(bad=0.5, commits=4_000, seed=2)
    assert 0.22 < share < 0.28
    assert abs(sum(ratios) / len(ratios) - 1.05) < 0.0006  # of the first runs it is 1.055
