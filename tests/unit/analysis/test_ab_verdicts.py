"""The table of an A/B: verdicts, what does not count, and how the whole table and the budget decide."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from builders import launch, measurement, result, run
from comparable_runs import benchmark
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchwright.analysis.comparison.ab_verdicts import (
    compare_decided,
    courses,
    hardly_counts,
    looks_of,
    may_be_decided,
)
from benchwright.analysis.comparison.disturbances import value_and_disturbance
from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.decision import Decision
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Launch, Run

BUSY = Note(text="ran while the machine was busy", kind="busy")
MIXED = {"mixed_versions": True}
SIDES = [("old", "new")]


def noise(seed: int, count: int, middle: float = 1.0, spread: float = 0.01) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(middle, spread) for _ in range(count)]


def ab(
    old: Sequence[float] | Sequence[dict[str, float]],
    new: Sequence[float] | Sequence[dict[str, float]],
    decision: Decision | None = None,
    *,
    direction: Direction = Direction.LOWER,
    busy: Sequence[int] = (),
    unit: str | None = "s",
    took_s: float = 1.0,
    **facts: object,
) -> Run:
    """Two sides that alternated as ABBA; the treatment's launches of the blocks `busy` were disturbed."""

    def made(side: int, block: int, values: float | dict[str, float]) -> Launch:
        metrics = values if isinstance(values, dict) else {"time": values}
        first = block % 2 == side
        return launch(
            *(measurement(v, metric=m, unit=unit, direction=direction) for m, v in metrics.items()),
            block=block,
            position=2 * block + (0 if first else 1),
            duration_s=took_s,
            notes=(BUSY,) if side and block in busy else (),
            facts=facts if side and block in busy else {},
        )

    both = [
        result(benchmark(name, name), *(made(side, block, v) for block, v in enumerate(values)))
        for side, (name, values) in enumerate((("old", old), ("new", new)))
    ]
    return run(*both, decision=decision or Decision(most_blocks=20))


def compared(of: Run) -> Comparison:
    return compare_decided(of, SIDES)[0]


def only(of: Run) -> Effect:
    (effect,) = compared(of).effects
    return effect


@pytest.mark.parametrize(
    ("direction", "factor", "verdict"),
    [
        (Direction.LOWER, 1.05, Verdict.REGRESSED),
        (Direction.LOWER, 0.95, Verdict.IMPROVED),
        (Direction.HIGHER, 1.05, Verdict.IMPROVED),
        (Direction.HIGHER, 0.95, Verdict.REGRESSED),
        (Direction.NEITHER, 1.05, Verdict.INCONCLUSIVE),
    ],
)
def test_the_direction_of_the_metric_decides_what_is_better(
    direction: Direction, factor: float, verdict: Verdict
) -> None:
    effect = only(ab(noise(1, 20), noise(2, 20, factor), direction=direction))
    assert effect.verdict is verdict
    assert effect.ratio == pytest.approx(factor, rel=0.02)
    assert (effect.advice is None) is (verdict is not Verdict.INCONCLUSIVE)


def exact(old: list[float], new: list[float], metric: str = "error.max_abs") -> Effect:
    return only(ab([{metric: v} for v in old], [{metric: v} for v in new], unit=None))


def test_an_error_that_was_always_zero_and_never_is_now_is_a_regression_although_it_has_no_ratio() -> None:
    zeros, errors = [0.0] * 8, [0.25] * 8
    assert exact(zeros, errors).verdict is Verdict.REGRESSED
    assert exact(errors, zeros).verdict is Verdict.IMPROVED
    assert exact(zeros, zeros).verdict is Verdict.SAME
    assert exact(zeros, [*errors[:7], 0.0]).verdict is Verdict.INCONCLUSIVE  # not in every launch
    assert exact(zeros, [math.nan] * 8).verdict is Verdict.INCONCLUSIVE
    assert exact([0.0] * 5, [0.25] * 5).verdict is Verdict.INCONCLUSIVE  # too few launches


def test_a_time_of_zero_decides_nothing() -> None:
    assert only(ab([0.0] * 8, [0.1] * 8)).verdict is Verdict.INCONCLUSIVE


def test_the_same_is_known_to_be_within_the_margin() -> None:
    effect = only(ab(noise(1, 20, spread=0.003), noise(2, 20, spread=0.003)))
    assert effect.verdict is Verdict.SAME
    noisy = only(ab(noise(1, 20, spread=0.05), noise(2, 20, spread=0.05)))
    assert noisy.verdict is Verdict.INCONCLUSIVE
    assert "pairs would decide" in str(noisy.advice)


def test_a_difference_of_exactly_the_margin_is_found() -> None:
    effect = only(ab(noise(1, 20, spread=0.002), noise(2, 20, 1.01, spread=0.002)))
    assert effect.verdict is Verdict.REGRESSED


@given(
    st.lists(st.tuples(st.floats(0.9, 1.1), st.floats(0.9, 1.1)), min_size=6, max_size=24),
    st.floats(-0.1, 0.1),
    st.sampled_from([0.0, 0.01, 0.05]),
)
def test_interval_q_value_and_verdict_never_disagree(
    pairs: list[tuple[float, float]], effect: float, margin: float
) -> None:
    decision = Decision(most_blocks=20, margin=margin)
    metrics = [{"time": a, "other": b} for a, b in pairs], [{"time": b * (1 + effect), "other": a} for a, b in pairs]
    table = compared(ab(*metrics, decision))
    for found in table.effects:
        assert found.interval is not None
        low, high = found.interval.low, found.interval.high
        excluded = low > 1 + 1e-12 or high < 1 - 1e-12
        within = 1 / (1 + margin) <= low and high <= 1 + margin
        assert low <= found.ratio * (1 + 1e-9)
        assert found.ratio <= high * (1 + 1e-9)
        assert found.q_value is not None
        if abs(found.q_value - decision.alpha) > 1e-9:
            assert excluded is (found.q_value <= decision.alpha)
        if within:
            assert found.verdict is Verdict.SAME
        else:
            assert (found.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)) is excluded


def test_the_whole_table_decides_and_its_intervals_say_so() -> None:
    rng = random.Random(4)
    sets = [[{f"m{i}": rng.gauss(1, 0.02) for i in range(30)} for _ in range(20)] for _ in range(2)]
    one = compared(ab([{"m0": s["m0"]} for s in sets[0]], [{"m0": s["m0"] * 1.02} for s in sets[1]]))
    many = compared(ab(sets[0], [s | {"m0": s["m0"] * 1.02} for s in sets[1]]))
    widths = [c.effects[0].interval.high - c.effects[0].interval.low for c in (one, many)]  # type: ignore[union-attr]
    assert widths[1] > widths[0]
    assert many.confidence == pytest.approx(1 - 0.01 / 30)
    assert one.effects[0].p_value == many.effects[0].p_value
    assert many.effects[0].q_value > one.effects[0].q_value  # type: ignore[operator]


def test_metrics_to_come_are_allowed_for() -> None:
    made = ab(noise(1, 20), noise(2, 20, 1.05))
    (now,) = compare_decided(made, SIDES)[0].effects
    (later,) = compare_decided(made, SIDES, more_effects=9)[0].effects
    assert now.q_value is not None
    assert later.q_value == pytest.approx(10 * now.q_value)


def test_disturbed_pairs_do_not_decide_and_that_is_said() -> None:
    slow = noise(2, 20)
    slow[3] = slow[8] = slow[9] = 3.0
    effect = only(ab(noise(1, 20), slow, busy=(3, 8, 9)))
    assert effect.launches == (17, 17)
    assert effect.ratio == pytest.approx(1, abs=0.01)
    assert [str(note) for note in effect.doubts] == [
        "3 of 20 pairs do not count: their launches ran while the machine was busy"
    ]


def test_pairs_whose_launches_could_use_different_numbers_of_cores_do_not_decide() -> None:
    made = ab(noise(1, 20), noise(2, 20, 2.0))
    mark = Note(text="could use only some of the machine's cores", evidence="1 of 2", kind="affinity")
    old, new = made.results
    some = tuple(replace(x, notes=(mark,)) if x.block in (2, 5) else x for x in new.launches)
    effect = only(replace(made, results=(old, replace(new, launches=some))))
    assert effect.launches == (18, 18)
    assert [str(note) for note in effect.doubts] == [
        "2 of 20 pairs do not count: their launches could use different numbers of cores"
    ]
    both = [replace(r, launches=tuple(replace(x, notes=(mark,)) for x in r.launches)) for r in made.results]
    assert only(replace(made, results=tuple(both))).launches == (20, 20)


def test_other_load_does_not_disturb_cpu_time_sizes_or_errors() -> None:
    for metric, unit in (("process.cpu_time", "s"), ("memory.peak_rss", "B"), ("error", "")):
        sides = ([{metric: v} for v in noise(seed, 20)] for seed in (1, 2))
        assert only(ab(*sides, busy=range(10), unit=unit)).launches == (20, 20)  # type: ignore[arg-type]
    mixed = ([{"process.cpu_time": v} for v in noise(seed, 20)] for seed in (1, 2))
    assert only(ab(*mixed, busy=range(10), **MIXED)).launches == (10, 10)  # type: ignore[arg-type]


def test_a_busy_machine_is_no_reason_to_leave_out_pairs_whose_launches_show_no_waiting() -> None:
    before = Note(text="the machine was busy before this run began", kind="busy")
    of = replace(ab(noise(1, 20), noise(2, 20, 2.0)), notes=(before,))
    assert only(of).verdict is Verdict.REGRESSED
    assert not only(of).doubts


def waiting(
    run: Run, seed: int, *, threads: int = 1, cpu_s: float = 0.01, background: bool = False, **seen: float
) -> Run:
    """As if launches had waited for a core for a while, each for another, told by the kernel; `duration_s` includes it, unless
    only something in the `background` waited. `seen`: at looks at all threads and processes."""
    rng = random.Random(seed)

    def waited(launch: Launch) -> Launch:
        took_s, wait_s = launch.duration_s or 0.0, rng.uniform(0.01, 0.06)
        usage = {"main_ran_s": cpu_s / threads, "main_waited_s": wait_s / threads}
        usage |= {"seen_ran_s": cpu_s, "seen_waited_s": wait_s, **seen} if seen else {}
        took_s -= wait_s if background else 0.0
        of_process: dict[str, object] = {"unit": "s", "direction": Direction.LOWER, "source": "process"}
        return replace(
            launch,
            duration_s=took_s + wait_s,
            notes=(BUSY,),
            facts={"usage": usage},
            measurements=(
                *launch.measurements,
                measurement(took_s + wait_s, metric="process.duration", **of_process),  # type: ignore[arg-type]
                measurement(cpu_s, metric="process.cpu_time", **of_process),  # type: ignore[arg-type]
                measurement(cpu_s / (cpu_s + wait_s), metric="cpu.own_share", unit="ratio", source="sampler"),
            ),
        )

    sides = [replace(result, launches=tuple(map(waited, result.launches))) for result in run.results]
    return replace(run, results=tuple(sides))


def test_what_waiting_for_a_core_did_not_change_counts_all_the_same() -> None:
    old, new = noise(1, 20, 0.01005, 1e-5), noise(2, 20, 0.01505, 1e-5)
    by_metric = {e.metric: e for e in compared(waiting(ab(old, new, took_s=0.06), 3)).effects}
    assert by_metric["time"].verdict is Verdict.REGRESSED
    assert by_metric["time"].launches == (20, 20)
    assert not by_metric["time"].doubts


def test_what_waiting_for_a_core_changed_does_not_count() -> None:
    rng = random.Random(5)
    slow = [0.06 + rng.uniform(0.01, 0.06) for _ in range(40)]
    by_metric = {e.metric: e for e in compared(waiting(ab(slow[:20], slow[20:], took_s=0.06), 3)).effects}
    assert by_metric["time"].interval is None
    assert by_metric["time"].doubts[0].text.startswith("20 of 20 pairs do not count")


def test_a_launch_is_timed_without_its_waiting_for_a_core() -> None:
    made = ab(noise(1, 20), noise(2, 20), took_s=0.06)
    slower = tuple(replace(x, duration_s=0.07) for x in made.results[1].launches)
    made = replace(made, results=(made.results[0], replace(made.results[1], launches=slower)))
    by_metric = {e.metric: e for e in compared(waiting(made, 3)).effects}
    effect = by_metric["process.duration"]
    assert effect.verdict is Verdict.REGRESSED
    assert effect.ratio == pytest.approx(7 / 6, abs=1e-9)
    assert (effect.control, effect.treatment) == (pytest.approx(0.06), pytest.approx(0.07))
    assert effect.basis == "compared without the time the launches waited for a core"


def test_what_a_single_launch_measured_is_without_its_waiting_too() -> None:
    made = waiting(ab(noise(1, 6), noise(2, 6), took_s=0.06), 3)
    launch = made.results[0].launches[0]
    of = {m.metric: value_and_disturbance(launch, m, None) for m in launch.measurements}
    assert of["process.duration"] == (pytest.approx(0.06), None)
    assert of["process.cpu_time"] == (0.01, None)
    assert of["time"][1] == "busy"


def test_the_waiting_of_several_threads_is_not_taken_off_the_time_of_a_launch() -> None:
    by_metric = {e.metric: e for e in compared(waiting(ab(noise(1, 20), noise(2, 20)), 3, threads=2)).effects}
    assert by_metric["process.duration"].basis is None


def test_a_launch_of_processes_that_worked_one_after_the_other_is_timed_without_their_waiting() -> None:
    made = ab(noise(1, 20), noise(2, 20), took_s=0.06)
    slower = tuple(replace(x, duration_s=0.07) for x in made.results[1].launches)
    made = replace(made, results=(made.results[0], replace(made.results[1], launches=slower)))

    def timed(**how: object) -> Effect:
        effects = compared(waiting(made, 3, threads=10, **how)).effects  # type: ignore[arg-type]
        return next(e for e in effects if e.metric == "process.duration")

    assert timed(seen_together=0.0).ratio == pytest.approx(7 / 6, abs=1e-9)
    assert timed(seen_together=0.0).verdict is Verdict.REGRESSED
    assert timed(seen_together=0.3).interval is None  # they waited at the same time
    assert timed(seen_together=0.0).basis == "compared without the time the launches waited for a core"
    few_ready = waiting(made, 3, threads=10, seen_together=0.0)
    unknown = [replace(x, facts={}) if (x.block or 0) % 3 == 0 else x for x in few_ready.results[0].launches]
    few_ready = replace(
        few_ready, results=(replace(few_ready.results[0], launches=tuple(unknown)), few_ready.results[1])
    )
    effect = next(e for e in compared(few_ready).effects if e.metric == "process.duration")
    assert (effect.verdict, effect.launches) == (
        Verdict.REGRESSED,
        (13, 13),
    )  # what is not known of some spoils none of the rest
    in_background = timed(seen_together=0.0, background=True)  # nobody waited for what waited
    assert in_background.basis is None
    assert in_background.ratio == pytest.approx(7 / 6, abs=0.02)


def test_a_quiet_launch_is_timed_as_it_was() -> None:
    made = ab([{"process.duration": v} for v in noise(1, 20)], [{"process.duration": v} for v in noise(2, 20)])
    (effect,) = compared(made).effects
    assert effect.basis is None


def test_without_a_quiet_pair_there_is_no_verdict() -> None:
    effect = only(ab(noise(1, 20), noise(2, 20, 2.0), busy=range(20)))
    assert (effect.verdict, effect.interval) == (Verdict.INCONCLUSIVE, None)
    assert str(effect.advice).startswith("none is left, and a verdict takes 6")
    assert may_be_decided(effect)
    assert hardly_counts(effect, 20)
    assert not hardly_counts(effect, 11)
    assert not hardly_counts(only(ab(noise(1, 20), noise(2, 20, 2.0), busy=range(10))), 20)


def test_a_larger_budget_is_advised_only_where_this_one_was_used_up() -> None:
    old, new = noise(1, 10, spread=0.2), noise(2, 10, spread=0.2)
    assert "larger --repeat" in str(only(ab(old, new, Decision(budget_s=600))).advice)
    assert "larger --budget" in str(only(ab(old, new, Decision(budget_s=10))).advice)


def test_few_pairs_are_no_verdict_however_far_apart() -> None:
    effect = only(ab(noise(1, 5), noise(2, 5, 10)))
    assert (effect.verdict, effect.interval) == (Verdict.INCONCLUSIVE, None)
    assert str(effect.advice).startswith("5 pairs were made, and a verdict takes 6")
    assert may_be_decided(effect)


def test_early_looks_are_stricter_than_the_last() -> None:
    old, new = noise(1, 10, spread=0.02), noise(2, 10, spread=0.02)
    early = only(ab(old, new, Decision(most_blocks=40)))
    late = only(ab(old, new, Decision(most_blocks=10)))
    assert early.p_value > late.p_value  # type: ignore[operator]
    assert early.interval.high > late.interval.high  # type: ignore[union-attr]


def test_a_budget_that_is_used_up_is_the_last_look() -> None:
    old, new = noise(1, 10, spread=0.02), noise(2, 10, spread=0.02)
    cut = only(ab(old, new, Decision(most_blocks=40, budget_s=20)))
    going_on = only(ab(old, new, Decision(most_blocks=40, budget_s=2000)))
    assert cut.p_value < going_on.p_value  # type: ignore[operator]


def test_a_group_gets_what_those_before_it_left_of_the_budget() -> None:
    def group(pair: str, launches: int) -> list[object]:
        return [
            result(
                benchmark(f"{pair}{side}", pair=pair),
                *(launch(block=block, duration_s=1.0) for block in range(launches)),
            )
            for side in "AB"
        ]

    made = run(*group("x", 5), *group("y", 2), *group("z", 0), decision=Decision(budget_s=90))  # type: ignore[arg-type]
    found = courses(made)
    assert [found[name].budget_s for name in ("xA", "yA", "zA")] == [30, 40, 76]
    assert [found[name].blocks for name in ("xB", "yB", "zB")] == [5, 2, 0]
    assert found["xA"].spent_s == (0, 2, 4, 6, 8, 10)


def test_looks_go_on_after_the_planned_pairs_while_disturbed_ones_are_replaced() -> None:
    assert looks_of(Decision(most_blocks=20)) == (8, 10, 13, 16, 20, 25, 30)
    assert looks_of(Decision(looks=(12, 24))) == (12, 24)
