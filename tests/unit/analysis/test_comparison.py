"""Comparing runs and interleaved benchmarks: verdicts, their symmetry, and how often they are wrong."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec
import pytest
from comparable_runs import benchmark, result, run
from hypothesis import given, settings
from hypothesis import strategies as st

from benchwright.analysis.comparison import compare, compare_interleaved, interleaved
from benchwright.analysis.ratio_tests import benjamini_hochberg, paired_ratio, unpaired_ratio
from benchwright.domain.comparison import Comparison, Effect, Verdict
from benchwright.domain.measurement import Measurement
from benchwright.domain.metric import Direction
from benchwright.domain.run import Launch, Result, Run
from benchwright.domain.status import Reason, Status

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
    assert effect.advice.startswith(("--repeat", "more than 200"))


def test_a_small_but_certain_difference_within_the_margin_is_the_same() -> None:
    effect = separate(noise(5, 20, 1, 0.001), noise(6, 20, 1.008, 0.001))
    assert effect.q_value is not None
    assert effect.q_value < 0.001
    assert effect.verdict is Verdict.SAME
    strict = separate(noise(5, 20, 1, 0.001), noise(6, 20, 1.008, 0.001), margin=0.002)
    assert strict.verdict is Verdict.REGRESSED


def test_values_that_never_vary_are_compared_too() -> None:
    assert separate([5.0] * 6, [5.0] * 6).verdict is Verdict.SAME
    assert separate([100.0] * 6, [105.0] * 6).verdict is Verdict.REGRESSED
    assert separate([0.0] * 6, [0.0] * 6).verdict is Verdict.SAME


@pytest.mark.parametrize("odd", [0.0, -1.0, math.nan, math.inf])
def test_what_has_no_ratio_is_inconclusive(odd: float) -> None:
    effect = separate([1.0] * 7, [*[1.0] * 6, odd])
    assert effect.verdict is Verdict.INCONCLUSIVE
    assert effect.advice is not None


def test_a_drift_larger_than_the_difference_takes_the_verdict_away() -> None:
    drifting = [1 + 0.01 * n for n in range(12)]
    effect = separate(drifting, [v * 1.08 for v in drifting])
    assert effect.doubt is not None
    assert effect.verdict is Verdict.INCONCLUSIVE
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
    failed = Launch(job="x", status=Status.FAILED, reason=Reason.CRASHED, block=0)
    both = run(old, msgspec.structs.replace(new, launches=(failed, *new.launches)))
    compared = compare_interleaved(both, "old", "new")
    assert compared.effects[0].launches == (7, 7)
    assert compared.missing == ("new: 1 of 8 launches did not end well; the others are compared",)
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
    assert "one after the other" in compared.remarks[0]


def failed(of: Result, launches: int) -> Result:
    bad = Launch(job="x", status=Status.FAILED, reason=Reason.CRASHED)
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
        launches = tuple(
            Launch(
                job="j",
                status=Status.OK,
                measurements=(
                    Measurement(
                        metric="speed",
                        unit="1/s",
                        direction=Direction.HIGHER,
                        samples=(10.0, 10.0),
                        source="log",
                        aggregate="average_aggregate",
                    ),
                ),
            )
            for _ in range(6)
        )
        one = Result(benchmark=benchmark(), status=Status.OK, launches=launches)
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
    there, back = separate(a, b), separate(b, a)
    assert_mirrored(there, back)


@given(st.lists(st.tuples(positive, positive), min_size=6, max_size=16))
def test_swapping_the_sides_of_pairs_inverts_the_ratio_and_mirrors_the_verdict(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = [list(x) for x in zip(*pairs, strict=True)]
    assert_mirrored(in_pairs(a, b), in_pairs(b, a))


def assert_mirrored(there: Effect, back: Effect) -> None:
    assert there.ratio * back.ratio == pytest.approx(1, rel=1e-9)
    assert there.p_value == pytest.approx(back.p_value, abs=1e-9)
    assert there.interval is not None
    assert back.interval is not None
    assert there.interval.low * back.interval.high == pytest.approx(1, rel=1e-9)
    assert MIRROR.get(there.verdict, there.verdict) is back.verdict


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


def test_a_five_percent_slow_down_is_found_with_twelve_launches_of_two_percent_noise() -> None:
    rng = random.Random(17)
    found = 0
    for _ in range(100):
        a, b = ([rng.gauss(m, 0.02) for _ in range(12)] for m in (1.0, 1.05))
        found += separate(a, b).verdict is Verdict.REGRESSED
    assert found >= 80


def test_hundreds_of_launches_are_compared_quickly_and_well() -> None:
    effect = separate(noise(1, 600), noise(2, 700, 1.05))
    assert effect.verdict is Verdict.REGRESSED
    assert effect.interval is not None
    assert effect.interval.high - effect.interval.low < 0.01
    pair = in_pairs(noise(1, 300), noise(2, 300, 1.05))
    assert pair.verdict is Verdict.REGRESSED
