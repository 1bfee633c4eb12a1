"""Comparing runs and interleaved benchmarks: verdicts, their symmetry, and how often they are wrong."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from typing import Any

import builders
import msgspec
import pytest
from builders import failed_launch, measurement, run
from comparable_runs import benchmark, result
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.analysis.comparison.compare import compare, compare_interleaved, interleaved
from benchwright.analysis.statistics.ratio_tests import benjamini_hochberg, paired_ratio, unpaired_ratio
from benchwright.core.comparison import Comparison, Effect, Verdict
from benchwright.core.conditions import DISTURBING
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction
from benchwright.core.note import Note
from benchwright.core.run import Result, Run
from benchwright.core.status import Reason, Status

positive = st.floats(0.5, 2)
side = st.lists(positive, min_size=6, max_size=14)
few_examples = settings(max_examples=40)
MIRROR = {Verdict.REGRESSED: Verdict.IMPROVED, Verdict.IMPROVED: Verdict.REGRESSED}


def noise(seed: int, count: int, middle: float = 1.0, spread: float = 0.01) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(middle, spread) for _ in range(count)]


def separate(a: Sequence[float], b: Sequence[float], direction: Direction = Direction.LOWER, **more: float) -> Effect:
    control, treatment = (run(result(benchmark(), v, direction=direction)) for v in (a, b))
    (effect,) = compare(control, treatment, **more).effects  # type: ignore[arg-type]
    return effect


def in_pairs(a: Sequence[float], b: Sequence[float], **more: float) -> Effect:
    (effect,) = pairs_of(a, b, **more).effects
    return effect


def pairs_of(a: Sequence[float], b: Sequence[float], **more: float) -> Comparison:
    both = [result(benchmark(n, n), v, blocks=range(len(v))) for n, v in (("old", a), ("new", b))]
    return compare_interleaved(run(*both), "old", "new", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("direction", "factor", "verdict"),
    [
        (Direction.LOWER, 1.1, Verdict.REGRESSED),
        (Direction.LOWER, 0.9, Verdict.IMPROVED),
        (Direction.HIGHER, 1.1, Verdict.IMPROVED),
        (Direction.HIGHER, 0.9, Verdict.REGRESSED),
        (Direction.LOWER, 1.0, Verdict.SAME),
        (Direction.NEITHER, 1.1, Verdict.INCONCLUSIVE),
    ],
)
def test_the_direction_of_the_metric_decides_what_is_better(
    direction: Direction, factor: float, verdict: Verdict
) -> None:
    effect = separate(noise(1, 20), noise(2, 20, factor), direction)
    assert effect.verdict is verdict
    assert effect.ratio == pytest.approx(factor, rel=0.01)
    assert effect.interval is not None
    assert effect.interval.low <= effect.ratio <= effect.interval.high


def test_five_launches_are_never_a_verdict_however_far_apart() -> None:
    for counts in ((5, 20), (20, 5), (1, 1)):
        effect = separate(noise(1, counts[0]), noise(2, counts[1], 10))
        assert effect.verdict is Verdict.INCONCLUSIVE
        assert effect.interval is None
        assert effect.advice is not None
        assert "--repeat 6" in effect.advice


def test_wide_noise_is_inconclusive_with_the_number_of_launches_that_would_tell() -> None:
    effect = separate(noise(3, 8, 1, 0.04), noise(4, 8, 1.01, 0.04))
    assert effect.verdict is Verdict.INCONCLUSIVE
    assert effect.advice is not None
    assert effect.advice.startswith(("needs --repeat", "needs more than 200 launches"))


def test_a_difference_that_may_be_none_says_how_many_launches_either_would_take() -> None:
    a = [1.0, 1.03, 0.97, 1.02, 0.98, 1.01, 0.99, 1.0]
    b = [v * f for v, f in zip(a, [0.99, 1.2, 1.02, 1.11, 1.0, 1.15, 0.98, 1.12], strict=True)]
    effect = in_pairs(a, b)
    assert effect.verdict is Verdict.INCONCLUSIVE
    assert re.fullmatch(
        r"needs --repeat \d+ or more if the difference is real, (--repeat \d+ or more|more than 200 launches) if there is none",
        effect.advice or "",
    )


def test_a_small_but_certain_difference_within_the_margin_is_the_same() -> None:
    effect = separate(noise(5, 20, 1, 0.001), noise(6, 20, 1.008, 0.001))
    assert effect.q_value is not None
    assert effect.q_value < 0.001
    assert effect.verdict is Verdict.SAME
    strict = in_pairs(noise(5, 20, 1, 0.001), noise(6, 20, 1.008, 0.001), margin=0.002)
    assert strict.verdict is Verdict.REGRESSED


def test_values_that_never_vary_are_compared_too() -> None:
    assert separate([5.0] * 6, [5.0] * 6).verdict is Verdict.SAME
    assert separate([100.0] * 6, [106.0] * 6).verdict is Verdict.REGRESSED
    assert in_pairs([100.0] * 6, [103.0] * 6).verdict is Verdict.REGRESSED
    assert separate([0.0] * 6, [0.0] * 6).verdict is Verdict.SAME


@pytest.mark.parametrize("odd", [0.0, -1.0, math.nan, math.inf])
def test_what_has_no_ratio_is_inconclusive(odd: float) -> None:
    effect = separate([1.0] * 7, [*[1.0] * 6, odd])
    assert effect.verdict is Verdict.INCONCLUSIVE
    assert effect.advice is not None


def test_a_drift_larger_than_the_difference_takes_the_verdict_away() -> None:
    drifting = [1 + 0.01 * n for n in range(12)]
    effect = separate(drifting, [v * 1.08 for v in drifting])
    assert "the control drifted by" in effect.doubts[0].text
    assert effect.verdict is Verdict.INCONCLUSIVE
    assert "alternate both in one run" in (effect.advice or "")
    assert separate(drifting, [v * 3 for v in drifting]).verdict is Verdict.REGRESSED


def test_pairs_see_through_a_drift_that_separate_runs_cannot() -> None:
    rng = random.Random(7)
    drifting = [1 + 0.02 * n for n in range(10)]
    slower = [v * 1.05 * rng.gauss(1, 0.003) for v in drifting]
    effect = in_pairs(drifting, slower)
    assert effect.paired
    assert effect.verdict is Verdict.REGRESSED
    assert effect.ratio == pytest.approx(1.05, rel=0.01)
    assert separate(drifting, slower).verdict is Verdict.INCONCLUSIVE


def test_one_spike_among_few_pairs_makes_no_verdict() -> None:
    effect = in_pairs(noise(8, 8), [*noise(9, 7), 5.0])
    assert effect.verdict is Verdict.INCONCLUSIVE


def test_blocks_in_which_one_side_failed_are_left_out_and_said() -> None:
    old = result(benchmark("old"), noise(1, 8), blocks=range(8))
    new = result(benchmark("new"), noise(2, 7, 1.2), blocks=range(1, 8))
    failed = failed_launch(job="x", block=0)
    both = run(old, msgspec.structs.replace(new, launches=(failed, *new.launches)))
    compared = compare_interleaved(both, "old", "new")
    assert compared.effects[0].launches == (7, 7)
    assert compared.missing == ("new: 1 of 8 launches failed (crashed); the others are compared",)
    assert compared.lost == compared.missing
    assert compare_interleaved(both, "new", "old").lost == ()  # the control's failures are no loss of the treatment
    assert interleaved(both, "old", "new")
    assert not interleaved(run(result(benchmark("a"), [1.0]), result(benchmark("b"), [1.0])), "a", "b")


def test_what_only_one_run_has_is_listed() -> None:
    before = run(result(benchmark("a"), noise(1, 6)), result(benchmark("b"), noise(2, 6)))
    after = run(result(benchmark("b"), noise(3, 6)), result(benchmark("c"), noise(4, 6)))
    compared = compare(before, after)
    assert [e.benchmark for e in compared.effects] == ["b"]
    assert compared.missing == ("a: only in control", "c: only in treatment")
    assert compared.lost == ("a: only in control",)
    assert "one after the other" in compared.remarks[0].text


def failed(of: Result, launches: int) -> Result:
    bad = failed_launch(job="x")
    return msgspec.structs.replace(
        of, status=Status.FAILED, reason=Reason.CRASHED, launches=(*of.launches, *[bad] * launches)
    )


@pytest.mark.parametrize(("good", "bad", "lost"), [(6, 1, False), (0, 2, True)])
def test_launches_that_fail_in_the_control_alone_are_no_loss_unless_nothing_is_left(
    good: int, bad: int, lost: bool
) -> None:
    before = run(failed(result(benchmark("a"), noise(1, good)), bad))
    after = run(result(benchmark("a"), noise(2, 6)))
    compared = compare(before, after)
    assert compared.missing
    assert bool(compared.lost) is lost
    assert compare(after, before).lost


def test_a_metric_that_one_side_lacks_is_listed_if_it_is_needed() -> None:
    both, one = (
        run(result(benchmark(), [{"time": 1.0, "loss": 2.0}] * 6)),
        run(result(benchmark(), [{"loss": 2.0}] * 6)),
    )
    assert compare(both, one, needed=["time"]).lost == ("sort time: only in control",)
    assert compare(one, both, needed=["time"]).missing == ("sort time: only in treatment",)
    assert compare(one, both, needed=["time"]).lost == ()
    assert compare(both, one).missing == ()


def test_what_was_measured_in_another_unit_or_direction_is_not_compared() -> None:
    seconds = result(benchmark(), noise(1, 6))
    for change in ({"unit": "ms"}, {"direction": Direction.HIGHER}):
        launches = tuple(
            msgspec.structs.replace(x, measurements=(msgspec.structs.replace(x.measurements[0], **change),))
            for x in seconds.launches
        )
        other = msgspec.structs.replace(seconds, launches=launches)
        compared = compare(run(seconds), run(other))
        assert compared.effects == ()
        assert "not compared" in compared.lost[0]
        assert compare(run(seconds), run(other), metrics=["memory"]).missing == ()


def test_each_run_is_condensed_with_its_own_workers() -> None:
    def of(workers: int | None) -> Run:
        speed = measurement(10.0, 10.0, metric="speed", unit="1/s", source="log", aggregate="average_aggregate")
        launches = [builders.launch(speed)] * 6
        one = builders.result(benchmark(), *launches)
        return msgspec.structs.replace(run(one), workers=workers)

    (effect,) = compare(of(4), of(8)).effects
    assert (effect.control, effect.treatment) == (40.0, 80.0)
    assert effect.ratio == pytest.approx(2.0)
    assert [d.what for d in compare(of(4), of(8)).differences] == ["workers"]
    assert compare(of(4), of(None)).effects == ()  # of a run that was told of none there is no such number


def test_false_alarms_are_counted_over_what_is_shown_only() -> None:
    before = run(*(result(benchmark(n), [{"time": v, "loss": v} for v in noise(i, 8)]) for i, n in enumerate("ab")))
    after = run(*(result(benchmark(n), [{"time": v, "loss": v} for v in noise(i + 5, 8)]) for i, n in enumerate("ab")))
    shown = compare(before, after, metrics={("a", "time"), ("b", "loss")}).effects
    assert [(e.benchmark, e.metric) for e in shown] == [("a", "time"), ("b", "loss")]
    assert max(e.q_value or 0 for e in shown) == max(e.p_value or 0 for e in shown)


def test_only_the_metrics_asked_for_are_compared() -> None:
    sets = [{"time": 1.0, "memory": 2.0}] * 6
    both = run(result(benchmark(), sets))
    assert [e.metric for e in compare(both, both, metrics=["memory"]).effects] == ["memory"]


@few_examples
@given(side, side)
def test_swapping_the_sides_inverts_the_ratio_and_mirrors_the_verdict(a: list[float], b: list[float]) -> None:
    assert mirrored(separate(a, b)) == seen(separate(b, a))


@given(st.lists(st.tuples(positive, positive), min_size=6, max_size=16))
def test_swapping_the_sides_of_pairs_inverts_the_ratio_and_mirrors_the_verdict(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = [list(x) for x in zip(*pairs, strict=True)]
    assert mirrored(in_pairs(a, b)) == seen(in_pairs(b, a))


def test_an_interval_that_just_touches_no_change_decides_nothing_on_either_side() -> None:
    pairs = [(2.0, 1.0)] * 7 + [(2.0, 2.0), (2.0, 1.5), (2.0, 1.9999999999999998), (1.25, 1.0), (0.75, 1.0)]
    a, b = [list(x) for x in zip(*pairs, strict=True)]
    assert in_pairs(a, b).verdict is in_pairs(b, a).verdict is Verdict.INCONCLUSIVE


def seen(effect: Effect) -> tuple[Any, ...]:
    """Its verdict, ratio, the upper end of the interval, and p-value."""
    assert effect.interval is not None
    return (
        effect.verdict,
        pytest.approx(effect.ratio, rel=1e-9),
        pytest.approx(effect.interval.high, rel=1e-9),
        pytest.approx(effect.p_value, abs=1e-9),
    )


def mirrored(effect: Effect) -> tuple[Any, ...]:
    """As `seen`, with the sides exchanged."""
    assert effect.interval is not None
    verdict = MIRROR.get(effect.verdict, effect.verdict)
    return verdict, 1 / effect.ratio, 1 / effect.interval.low, effect.p_value


@given(side, side, st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(a: list[float], b: list[float], scale: float) -> None:
    plain, scaled = unpaired_ratio(a, b, 0.95), unpaired_ratio([v * scale for v in a], [v * scale for v in b], 0.95)
    assert scaled.ratio == pytest.approx(plain.ratio, rel=1e-9)
    paired = [x[: min(len(a), len(b))] for x in (a, b)]
    one = paired_ratio(paired[0], paired[1], 0.99)
    other = paired_ratio([v * scale for v in paired[0]], [v * scale for v in paired[1]], 0.99)
    assert other.ratio == pytest.approx(one.ratio, rel=1e-9)


@given(st.lists(st.tuples(positive, positive), min_size=6, max_size=16), st.randoms(use_true_random=False))
def test_the_order_of_the_blocks_does_not_change_the_ratio(
    pairs: list[tuple[float, float]], rng: random.Random
) -> None:
    mixed = rng.sample(pairs, len(pairs))
    a, b = (paired_ratio(*zip(*p, strict=True), 0.99) for p in (pairs, mixed))
    assert a.ratio == pytest.approx(b.ratio)
    assert a.p_value == pytest.approx(b.p_value)


@given(side, side, st.randoms(use_true_random=False))
def test_the_order_of_separate_launches_changes_the_width_but_not_the_ratio(
    a: list[float], b: list[float], rng: random.Random
) -> None:
    one, other = (unpaired_ratio(x, b, 0.95) for x in (a, rng.sample(a, len(a))))
    assert one.ratio == pytest.approx(other.ratio)
    if one.interval.widened == other.interval.widened == 1:
        assert one.p_value == pytest.approx(other.p_value)


@few_examples
@given(side, side, st.floats(0, 0.3), st.floats(0, 0.3))
def test_a_larger_margin_only_moves_towards_the_same(a: list[float], b: list[float], one: float, other: float) -> None:
    order = {Verdict.REGRESSED: 0, Verdict.IMPROVED: 0, Verdict.INCONCLUSIVE: 1, Verdict.SAME: 2}
    small, large = sorted((one, other))
    assert order[separate(a, b, margin=small).verdict] <= order[separate(a, b, margin=large).verdict]


@given(st.lists(st.floats(0, 1), max_size=30))
def test_q_values_are_never_below_p_values_and_keep_their_order(p: list[float]) -> None:
    q = benjamini_hochberg(p)
    assert all(a <= b or b == pytest.approx(a) for a, b in zip(p, q, strict=True))
    assert all(b <= 1 for b in q)
    by_p = sorted(range(len(p)), key=p.__getitem__)
    assert [q[i] for i in by_p] == sorted(q)


@given(st.floats(0, 1))
def test_one_comparison_needs_no_correction(p: float) -> None:
    assert benjamini_hochberg([p]) == [p]


def test_q_values_are_those_of_the_textbook() -> None:
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.04 * 4 / 3, 0.04 * 4 / 3, 0.5])


def test_one_large_regression_is_found_in_a_long_table_of_six_launches() -> None:
    rng = random.Random(13)
    names = [f"m{n}" for n in range(200)]
    runs = [
        run(result(benchmark(), [{n: rng.gauss(f if n == "m7" else 1, 0.01) for n in names} for _ in range(6)]))
        for f in (1.0, 2.0)
    ]
    found = compare(*runs).effects
    assert [e.metric for e in found if e.verdict is Verdict.REGRESSED] == ["m7"]


@pytest.mark.parametrize(("way", "limit"), [("separate", 0.085), ("pairs", 0.03)])
@pytest.mark.unmeasured
def test_equal_sides_are_rarely_called_different(way: str, limit: float) -> None:
    rng = random.Random(way)
    called = 0
    for n in range(400):
        count = (6, 8, 12)[n % 3]
        a, b = ([rng.lognormvariate(0, 0.03) for _ in range(count)] for _ in range(2))
        effect = (separate if way == "separate" else in_pairs)(a, b, margin=0)
        called += effect.verdict is not Verdict.INCONCLUSIVE
    # 5 and 1 %, and three standard errors.
    assert called / 400 <= limit


def test_ten_percent_are_found_between_separate_runs_of_one_percent_noise() -> None:
    rng = random.Random(17)
    found = 0
    for _ in range(100):
        a, b = ([rng.gauss(m, 0.01) for _ in range(8)] for m in (1.0, 1.1))
        found += separate(a, b).verdict is Verdict.REGRESSED
    assert found >= 95


def test_five_percent_are_found_between_twenty_pairs_of_two_percent_noise() -> None:
    rng = random.Random(17)
    found = 0
    for _ in range(100):
        a, b = ([rng.gauss(m, 0.02) for _ in range(20)] for m in (1.0, 1.05))
        found += in_pairs(a, b).verdict is Verdict.REGRESSED
    assert found >= 95


def test_hundreds_of_launches_are_compared_quickly_and_well() -> None:
    effect = separate(noise(1, 600), noise(2, 700, 1.1))
    assert effect.verdict is Verdict.REGRESSED
    assert effect.interval is not None
    assert effect.interval.high - effect.interval.low < 0.01
    pair = in_pairs(noise(1, 300), noise(2, 300, 1.05))
    assert pair.verdict is Verdict.REGRESSED


# Separate runs: what they recorded, and what they differ by without a change.


def noted(of: Result, kind: str, figure: str | None = None, share: float = 1.0) -> Result:
    """The same result, whose first launches were noted to be disturbed."""
    note = Note(text=f"something {kind}", kind=kind, evidence=figure)
    many = round(share * len(of.launches))
    return msgspec.structs.replace(
        of,
        launches=tuple(msgspec.structs.replace(x, notes=(note,)) if n < many else x for n, x in enumerate(of.launches)),
    )


@pytest.mark.parametrize("kind", sorted(DISTURBING))
@pytest.mark.parametrize("side", ["control", "treatment"])
@pytest.mark.parametrize("factor", [1.0, 1.8])
def test_disturbed_launches_of_separate_runs_decide_nothing(kind: str, side: str, factor: float) -> None:
    before, after = result(benchmark(), noise(1, 20)), result(benchmark(), noise(2, 20, factor))
    if side == "control":
        before = noted(before, kind, "got 50 % of the CPU time it wanted")
    else:
        after = noted(after, kind, "got 50 % of the CPU time it wanted")
    (effect,) = compare(run(before), run(after)).effects
    assert effect.verdict is Verdict.INCONCLUSIVE
    words = f"{side}: 20 of 20 launches {DISTURBING[kind]}"
    assert effect.doubts == (Note(text=words, evidence="got 50 % of the CPU time it wanted", kind=kind),)
    assert "measure again on a quieter machine, or alternate both in one run" in (effect.advice or "")


def test_disturbed_launches_have_no_part_in_counting_false_alarms() -> None:
    before = run(*(result(benchmark(n), noise(s, 8, 1, 0.02)) for s, n in enumerate("abc")))
    after = run(
        noted(result(benchmark("a"), noise(7, 8, 3)), "busy"),
        *(result(benchmark(n), noise(s, 8, 1.02, 0.02)) for s, n in ((8, "b"), (9, "c"))),
    )
    effects = compare(before, after).effects
    assert effects[0].q_value is None
    assert max(e.q_value or 0 for e in effects) == max(e.p_value or 0 for e in effects[1:])


def pairs_of_which(share: float) -> tuple[Result, Result]:
    """A control and a treatment that takes 10 % longer, both disturbed in that share of their pairs."""
    old, new = (
        noted(result(benchmark(n, n), noise(s, 20, f), blocks=range(20)), "busy", share=share)
        for n, s, f in (("old", 1, 1.0), ("new", 2, 1.1))
    )
    return old, new


def test_pairs_of_disturbed_launches_do_not_decide_and_say_so() -> None:
    compared = compare_interleaved(run(*pairs_of_which(1.0)), "old", "new")
    (effect,) = compared.effects
    assert (effect.verdict, effect.interval, effect.pairs) == (Verdict.INCONCLUSIVE, None, ())
    assert str(effect.doubts[0]) == f"20 of 20 pairs do not count: their launches {DISTURBING['busy']}"
    advice = "none is left, and a verdict takes 6; use a larger --repeat or a quieter machine, or judge by CPU time: "
    assert effect.advice == advice + "bw compare run.1 --between old new --metric process.cpu_time"
    assert tuple(map(str, compared.doubts)) == tuple(
        f"{name}: something busy (20 of 20 launches)" for name in ("old", "new")
    )


def test_other_pairs_decide_without_the_disturbed_ones() -> None:
    (effect,) = compare_interleaved(run(*pairs_of_which(0.25)), "old", "new").effects
    assert effect.verdict is Verdict.REGRESSED
    assert len(effect.pairs) == 15
    assert str(effect.doubts[0]).startswith("5 of 20 pairs do not count")


def test_a_few_disturbed_launches_do_not_keep_the_others_from_deciding() -> None:
    before = noted(result(benchmark(), noise(1, 20)), "busy", share=0.2)
    (effect,) = compare(run(before), run(result(benchmark(), noise(2, 20, 1.3)))).effects
    assert effect.verdict is Verdict.REGRESSED


def test_load_says_nothing_about_memory_or_how_well_a_model_learns() -> None:
    for metric, unit, level in (("memory.peak", "B", 2.0**30), ("loss", None, 1.0)):
        both = []
        for values in (noise(1, 12, level), noise(2, 12, 1.04 * level)):
            busy = (Note(text="busy", kind="busy"),)
            launches = [
                builders.launch(measurement(v, metric=metric, unit=unit, source="process"), notes=busy) for v in values
            ]
            both.append(run(builders.result(benchmark(), *launches)))
        (effect,) = compare(*both).effects
        assert effect.verdict is Verdict.REGRESSED, metric


def test_another_clock_of_the_gpu_is_a_doubt() -> None:
    def at(mhz: float, factor: float) -> Run:
        clock = Measurement(
            metric="gpu.clock",
            unit="MHz",
            direction=Direction.NEITHER,
            samples=(mhz,),
            source="sampler",
            labels={"device": "0"},
        )
        of = result(benchmark(), [factor * v for v in (1.0, 1.003, 0.998, 1.001, 0.999, 1.002, 0.997, 1.0)])
        launches = tuple(msgspec.structs.replace(x, measurements=(*x.measurements, clock)) for x in of.launches)
        return run(msgspec.structs.replace(of, launches=launches))

    (effect,) = compare(at(1755, 1.0), at(1410, 1.25), metrics=["time"]).effects
    assert effect.verdict is Verdict.REGRESSED
    assert list(map(str, effect.doubts)) == ["GPU 0 ran at different clocks: 1,755 and 1,410 MHz"]


def test_notes_of_runs_and_launches_travel_into_the_comparison() -> None:
    before = msgspec.structs.replace(
        run(noted(result(benchmark(), noise(1, 8)), "power_cap", share=0.5), id="a.1"), notes=(Note(text="imported"),)
    )
    compared = compare(before, run(result(benchmark(), noise(2, 8)), id="b.1"))
    assert list(map(str, compared.doubts)) == ["a.1: imported", "sort, control: something power_cap (4 of 8 launches)"]


def test_loops_that_drift_within_their_launches_say_so() -> None:
    rng = random.Random(5)

    def drifting(by: float) -> Run:
        samples = [[rng.gauss(1, 0.01) * (1 + by * step / 100) for step in range(100)] for _ in range(6)]
        launches = [builders.launch(measurement(*s, metric="step_time", unit="s")) for s in samples]
        return run(builders.result(benchmark(), *launches))

    (effect,) = compare(drifting(0.0), drifting(0.2)).effects
    assert [doubt.text.split(" by ")[0] for doubt in effect.doubts] == ["treatment: samples drift"]


def test_a_difference_that_runs_have_without_a_change_is_not_called() -> None:
    effect = separate(noise(1, 20, 1, 0.002), noise(2, 20, 1.045, 0.002))
    assert effect.verdict is Verdict.INCONCLUSIVE
    assert "between separate runs only differences clearly above 5.0 % count" in (effect.advice or "")
    assert separate(noise(1, 20, 1, 0.002), noise(2, 20, 1.045, 0.002), run_to_run=0.01).verdict is Verdict.REGRESSED
    assert in_pairs(noise(1, 20, 1, 0.002), noise(2, 20, 1.045, 0.002)).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("place", [1, 2, 4, 8, 12, 14, 15])
def test_a_step_of_the_machine_anywhere_makes_no_verdict(place: int) -> None:
    rng = random.Random(place)
    for _ in range(20):
        series = [rng.gauss(1, 0.01) * (1.05 if n >= place else 1) for n in range(16)]
        assert separate(series[:8], series[8:]).verdict in (Verdict.INCONCLUSIVE, Verdict.SAME)


@pytest.mark.parametrize("count", [8, 20])
@pytest.mark.parametrize("family", ["steady", "step", "straight drift", "AR(.9)", "random walk"])
def test_unchanged_programs_are_not_called_different_between_separate_runs(family: str, count: int) -> None:
    """A fast version of performance/separate_runs.py: false verdicts of at most 2 %, here none of 60."""
    rng = random.Random(f"{family} {count}")

    def series() -> list[float]:
        level, place, found = rng.gauss(0, 1), rng.randrange(1, 2 * count), []
        for n in range(2 * count):
            level = 0.9 * level + math.sqrt(1 - 0.81) * rng.gauss(0, 1)
            of_family = {
                "steady": 0.0,
                "step": 0.05 * (n >= place),
                "straight drift": 0.1 * n / (2 * count),
                "AR(.9)": 0.02 * level,
                "random walk": found[-1] - 1 + 0.01 * rng.gauss(0, 1) if found else 0.0,
            }[family]
            found.append(1 + of_family + (0.0 if family == "random walk" else 0.01 * rng.gauss(0, 1)))
        return found

    called = 0
    for _ in range(60):
        both = series()
        called += separate(both[:count], both[count:]).verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    assert called <= 1


# Interval and test are one calculation, and the reason is the real one.


@few_examples
@given(side, side, st.booleans(), st.sampled_from([0.9, 0.95, 0.99]))
def test_an_interval_leaves_one_exactly_if_its_p_value_says_so(
    a: list[float], b: list[float], in_order: bool, confidence: float
) -> None:
    found = unpaired_ratio(sorted(a) if in_order else a, b, confidence)  # in order: it resembles its neighbours
    assert (found.interval.low > 1 or found.interval.high < 1) is (found.p_value <= 1 - confidence)
    short = min(len(a), len(b))
    pairs = paired_ratio(a[:short], b[:short], confidence)
    if abs(pairs.p_value - (1 - confidence)) > 1e-9:
        assert (pairs.interval.low > 1 or pairs.interval.high < 1) is (pairs.p_value < 1 - confidence)


def test_the_ends_of_intervals_are_those_of_wilcoxon() -> None:
    """As wilcox.test(log(b), log(a), conf.int = TRUE) of R has them: the 6th of 36 differences, the 8th of 78 averages."""
    a, b = noise(31, 6), noise(32, 6)
    differences = sorted(math.log(y) - math.log(x) for x in a for y in b)
    found = unpaired_ratio(a, b, 0.95).interval
    if found.widened == 1:
        assert (math.log(found.low), math.log(found.high)) == pytest.approx((differences[5], differences[-6]))
    x, y = noise(33, 12), noise(34, 12)
    logs = [math.log(j) - math.log(i) for i, j in zip(x, y, strict=True)]
    averages = sorted((p + q) / 2 for i, p in enumerate(logs) for q in logs[i:])
    found = paired_ratio(x, y, 0.99).interval
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((averages[7], averages[-8]))


@few_examples
@given(st.lists(st.tuples(side, side), min_size=1, max_size=6))
def test_many_comparisons_are_the_reason_only_where_they_changed_the_outcome(
    sides: list[tuple[list[float], list[float]]],
) -> None:
    runs = [run(*(result(benchmark(f"b{n}"), pair[which]) for n, pair in enumerate(sides))) for which in (0, 1)]
    for effect in compare(*runs).effects:
        blamed = "comparisons" in (effect.advice or "")
        assert effect.p_value is not None
        assert effect.q_value is not None
        if blamed:
            assert len(sides) > 1
            assert effect.p_value <= 0.05 < effect.q_value


# What depends on how long a loop ran.


def course(*lengths: tuple[int, int], slower: float = 1.0, aggregate: str = "last") -> Run:
    """Launches whose loss falls with every step, of so many warm-up and measured steps."""
    launches = []
    for number, (warmup, measured) in enumerate(lengths):
        loss = [slower * (1 + 10 / (1 + step)) * (1 + 0.0001 * number) for step in range(warmup + measured)]
        given = Measurement(
            metric="loss",
            unit=None,
            direction=Direction.LOWER,
            samples=tuple(loss[warmup:]),
            warmup_samples=tuple(loss[:warmup]),
            source="give",
            aggregate=aggregate,
        )
        launches.append(builders.launch(given, job=f"j{number}"))
    return run(Result(benchmark=benchmark(), status=Status.OK, launches=tuple(launches)))


@pytest.mark.parametrize(("aggregate", "basis"), [("last", "at value 20"), ("median", "over values 16 to 20")])
def test_a_loss_is_compared_at_equal_steps(aggregate: str, basis: str) -> None:
    short, long = course(*[(5, 15)] * 6, aggregate=aggregate), course(*[(15, 85)] * 6, aggregate=aggregate)
    (effect,) = compare(short, long).effects
    assert effect.ratio == pytest.approx(1, abs=0.001)
    assert effect.verdict is Verdict.SAME
    assert effect.basis == f"compared {basis} of each launch, which all of them reached"
    worse = course(*[(15, 85)] * 6, slower=1.2, aggregate=aggregate)
    assert compare(short, worse).effects[0].verdict is Verdict.REGRESSED


def test_a_loss_of_equal_steps_is_compared_as_it_is() -> None:
    one, other = course(*[(5, 15)] * 6), course(*[(8, 12)] * 6)
    (effect,) = compare(one, other).effects
    assert (effect.verdict, effect.basis) == (Verdict.SAME, None)


def test_a_loss_without_a_common_step_is_not_compared_and_that_is_said() -> None:
    compared = compare(course(*[(5, 5)] * 6, aggregate="median"), course(*[(30, 5)] * 6, aggregate="median"))
    assert compared.effects == ()
    assert compared.missing == ("sort loss: no step measured by every launch; not compared",)
    assert compared.lost == ()


def test_times_that_do_not_trend_are_compared_over_all_that_was_measured() -> None:
    rng = random.Random(3)

    def times(count: int) -> Run:
        samples = [[rng.gauss(10, 0.1) for _ in range(count)] for _ in range(6)]
        launches = [builders.launch(measurement(*s, metric="ttft_ms", unit="ms", source="give")) for s in samples]
        return run(builders.result(benchmark(), *launches))

    (effect,) = compare(times(20), times(50)).effects
    assert effect.basis is None


# What the treatment lost.


@pytest.mark.parametrize("odd", [math.nan, math.inf, 0.0, -1.0])
@pytest.mark.parametrize("paired", [False, True])
def test_a_treatment_whose_time_is_no_number_is_a_loss(odd: float, paired: bool) -> None:
    good, bad = noise(1, 8), [*noise(2, 7), odd]
    if paired:
        compared = pairs_of(good, bad)
    else:
        compared = compare(run(result(benchmark(), good)), run(result(benchmark(), bad)))
    (text,) = compared.lost
    assert text.endswith(f"time: {odd:g} in 1 of 8 launches of the treatment")
    assert compared.effects[0].verdict is Verdict.INCONCLUSIVE


def test_no_waiting_is_no_loss() -> None:
    both = [run(result(benchmark(), [{"wait_time": 0.0}] * 6)) for _ in range(2)]
    assert compare(*both).lost == ()


def test_a_benchmark_skipped_on_both_sides_is_no_loss_and_on_one_it_is() -> None:
    skipped = Result(benchmark=benchmark("gpu"), status=Status.SKIPPED, reason=Reason.LACKS_DEVICES)
    good = result(benchmark("gpu"), noise(1, 6))
    other = result(benchmark("cpu"), noise(2, 6))
    assert compare(run(skipped, other), run(skipped, other)).lost == ()
    assert compare(run(skipped, other), run(skipped, other)).missing == ("gpu: skipped in both (lacks devices)",)
    assert compare(run(good, other), run(skipped, other)).lost


def test_a_treatment_that_failed_a_check_is_a_loss_although_its_launches_ended_well() -> None:
    good = result(benchmark(), noise(1, 6))
    wrong = msgspec.structs.replace(good, status=Status.FAILED, reason=Reason.INVALID, detail="the check failed")
    assert compare(run(good), run(wrong)).lost == ("sort: failed in treatment (invalid: the check failed)",)
    assert compare(run(wrong), run(good)).lost == ()
