"""A suite's score: what the processes did together, never without what failed."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from suite_runs import benchmark, failed, launch, measured, on_devices, result, run

from benchwright.analysis.score import (
    benchmark_score,
    compare_scores,
    doubts_about,
    geometric_mean,
    score_run,
    suite_score,
)
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, MetricSpec
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.core.score import BenchmarkScore
from benchwright.core.status import Reason, Status

rates = st.floats(0.01, 1e6)
weights = st.floats(0.1, 10)


def scored(*values: tuple[float, float]) -> list[BenchmarkScore]:
    return [BenchmarkScore(name=f"b{i}", status=Status.OK, value=v, weight=w) for i, (v, w) in enumerate(values)]


def test_a_benchmark_scores_the_sum_of_its_processes_medians_after_warm_up() -> None:
    slow_start = measured("rate", 100.0, 110.0, 90.0, warmup_samples=(1.0, 2.0))
    first = Launch(job="b.D0", status=Status.OK, devices=(0,), measurements=(slow_start,))
    second = launch(200.0, 202.0, 9.0, devices=(1,))
    score = benchmark_score(result("b", first, second))
    assert score.value == 300.0
    assert (score.median, score.processes, score.devices) == (150.0, 2, 2)
    assert [(s.name, s.relative) for s in score.seats] == [("D0", 0.5), ("D1", 1.0)]


def test_of_several_launches_the_median_of_their_sums_counts() -> None:
    score = benchmark_score(on_devices("b", (10.0, 20.0), (11.0, 21.0), (10.0, 80.0)))
    assert score.value == 32.0
    assert score.interval is None
    assert [s.value for s in score.seats] == [10.0, 21.0]


def test_six_launches_give_an_interval_over_launches() -> None:
    score = benchmark_score(on_devices("b", *((10.0 + n / 10, 20.0) for n in (3, 1, 4, 0, 5, 2))))
    assert score.interval is not None
    assert score.interval.low < 30.25 < score.interval.high


def test_processes_of_one_launch_give_no_interval_since_they_share_what_is_peculiar_to_it() -> None:
    """Eight devices that agree to half a percent may all be two percent slower in the next launch."""
    score = benchmark_score(on_devices("b", (100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1)))
    assert score.value is not None
    assert (score.interval, score.half_width) == (None, None)


def test_the_ranks_of_one_process_count_by_what_they_did_together() -> None:
    ranks = [measured("rate", 10.0, labels={"rank": str(n)}) for n in range(2)]
    whole = measured("rate", 21.0, labels={"ranks": "2"})
    both = Launch(job="b", status=Status.OK, measurements=(*ranks, whole))
    assert benchmark_score(result("b", both)).value == 21.0
    alone = Launch(job="b", status=Status.OK, measurements=tuple(ranks))
    assert benchmark_score(result("b", alone)).value == 20.0


def log_result(*values: tuple[str, str | None, Direction]) -> Any:
    measurements = tuple(
        Measurement(metric=name, unit=unit, direction=direction, samples=(4.0,), source="log")
        for name, unit, direction in values
    )
    specs = tuple(MetricSpec(name=name, pattern=name) for name, _, _ in values)
    return result("b", Launch(job="b", status=Status.OK, measurements=measurements), of=benchmark("b", metrics=specs))


def test_without_a_loop_the_first_metric_asked_for_that_is_better_higher_counts_and_a_rate_before_others() -> None:
    loss, accuracy = ("loss", None, Direction.LOWER), ("accuracy", "%", Direction.HIGHER)
    speed = ("speed", "img/s", Direction.HIGHER)
    assert benchmark_score(log_result(loss, accuracy, speed)).metric == "speed"
    assert benchmark_score(log_result(loss, accuracy)).metric == "accuracy"
    none = benchmark_score(log_result(loss))
    assert (none.value, none.why) == (None, "it has no rate to score")


def test_what_failed_is_stated_and_not_hidden() -> None:
    score = score_run(run(on_devices("a", (100.0,)), failed("b", "exit code 3")))
    assert (score.value, score.expected, score.counted, score.failed) == (pytest.approx(100.0), 2, 1, 1)
    assert score.failure_rate == 0.5
    bad = score.benchmarks[1]
    assert (bad.value, bad.why) == (None, "crashed: exit code 3")


def test_nothing_that_succeeded_gives_no_number() -> None:
    score = score_run(run(failed("a"), failed("b")))
    assert (score.value, score.failure_rate) == (None, 1.0)


def test_a_skipped_benchmark_is_missing_and_a_disabled_one_is_not_meant() -> None:
    skipped = result("s", status=Status.SKIPPED, reason=Reason.LACKS_DEVICES, detail="needs 2 GPUs")
    disabled = result("d", status=Status.SKIPPED, reason=Reason.DISABLED, detail="not enabled")
    score = score_run(run(on_devices("a", (1.0,)), skipped, disabled))
    assert (score.expected, score.missing, score.failed) == (2, 1, 0)
    assert [s.name for s in score.benchmarks] == ["a", "s"]


def test_weights_of_a_suite_file_replace_those_of_the_run_and_name_what_was_not_run() -> None:
    both = run(on_devices("a", (10.0,)), on_devices("b", (1000.0,)))
    assert score_run(both).value == pytest.approx(100.0)
    score = score_run(both, weights={"a": 2.0, "b": 1.0, "c": 1.0, "off": 0.0})
    assert score.value == pytest.approx(10 ** (5 / 3))
    assert (score.missing, score.benchmarks[-1].name, score.benchmarks[-1].why) == (1, "c", "not in this run")


def busy(of: Result) -> Result:
    note = Note(text="ran while the machine was busy", kind="busy")
    return msgspec.structs.replace(of, launches=tuple(msgspec.structs.replace(x, notes=(note,)) for x in of.launches))


def test_scores_from_a_busy_machine_say_so_when_they_are_compared() -> None:
    quiet = on_devices("b", *((100.0 + n,) for n in range(6)))
    doubt = Note(text="b: 6 of 6 launches ran while the machine was busy", kind="busy")
    assert doubts_about(run(quiet), run(busy(quiet))) == doubts_about(run(busy(quiet)), run(quiet)) == (doubt,)
    assert doubts_about(run(quiet), run(quiet)) == ()


def test_energy_of_a_shared_device_counts_once() -> None:
    watts = measured("gpu.power", 300.0, unit="W", source="sampler", aggregate="average", labels={"device": "0"})
    jobs = [launch(100.0, seat=n, devices=(0,), more=(watts,)) for n in range(2)]
    assert benchmark_score(result("b", *jobs)).joules_per_item == 1.5


def test_energy_of_an_item_is_the_one_that_was_measured_by_the_drivers_counter() -> None:
    """Not a second estimate from samples of the power, which a report would show beside it."""
    jobs = []
    for seat, joules in enumerate((2.0, 4.0)):
        watts = measured(
            "gpu.power", 300.0, unit="W", source="sampler", aggregate="average", labels={"device": str(seat)}
        )
        counted = measured("energy.item", joules, unit="J", source="sampler")
        jobs.append(launch(100.0 * (seat + 1), seat=seat, devices=(seat,), more=(watts, counted)))
    assert benchmark_score(result("b", *jobs)).joules_per_item == (2 * 100 + 4 * 200) / 300
    alone = launch(100.0, devices=(0,), more=(measured("energy.item", 2.5, unit="J", source="sampler"),))
    assert benchmark_score(result("b", alone)).joules_per_item == 2.5


def test_devices_of_the_same_number_on_two_nodes_are_two() -> None:
    jobs = []
    for seat, node in enumerate(("first", "second")):
        labels = {"device": "0", "node": node}
        watts = measured("gpu.power", 300.0, unit="W", source="sampler", aggregate="average", labels=labels)
        jobs.append(launch(100.0, seat=seat, devices=(0,), more=(watts,)))
    found = benchmark_score(result("b", *jobs))
    assert (found.devices, found.joules_per_item) == (2, 3.0)


class TestTwoRuns:
    def test_ratios_of_each_and_of_all(self) -> None:
        before = score_run(run(on_devices("a", (100.0,)), on_devices("b", (10.0,))))
        after = score_run(run(on_devices("a", (110.0,)), on_devices("b", (10.0,))))
        compared = compare_scores(before, after, "before")
        assert [r.ratio for r in compared.benchmarks] == pytest.approx([1.1, 1.0])
        assert compared.whole is not None
        assert compared.whole.ratio == pytest.approx(math.sqrt(1.1))

    def test_scores_of_other_units_are_not_compared(self) -> None:
        other = result("b", launch(5.0, more=()), of=benchmark("b"))
        in_steps = msgspec.structs.replace(
            other,
            launches=tuple(
                msgspec.structs.replace(x, measurements=(measured("rate", 5.0, unit="steps/s"),))
                for x in other.launches
            ),
        )
        compared = compare_scores(score_run(run(other)), score_run(run(in_steps)), "before")
        assert (compared.whole, compared.benchmarks, compared.left_out) == (None, (), ("b",))


def test_the_price_is_told_for_each_point_of_the_score() -> None:
    assert score_run(run(on_devices("a", (100.0,))), price=500.0).price_per_score == pytest.approx(5.0)
    assert score_run(run(failed("a")), price=500.0).price_per_score is None


@given(st.lists(st.tuples(rates, weights), min_size=1, max_size=6), st.floats(0.01, 100))
def test_scaling_every_rate_scales_the_score(values: list[tuple[float, float]], factor: float) -> None:
    before, after = geometric_mean(values), geometric_mean([(v * factor, w) for v, w in values])
    assert before is not None
    assert after == pytest.approx(before * factor)


@given(st.lists(rates, min_size=1, max_size=4), st.floats(0.01, 100))
def test_scaling_a_benchmarks_rates_scales_its_score(values: list[float], factor: float) -> None:
    before = benchmark_score(on_devices("b", values)).value
    after = benchmark_score(on_devices("b", [v * factor for v in values])).value
    assert before is not None
    assert after == pytest.approx(before * factor)


@given(st.lists(st.tuples(rates, weights), min_size=1, max_size=6), rates)
def test_a_benchmark_of_weight_0_changes_nothing(values: list[tuple[float, float]], other: float) -> None:
    assert suite_score(scored(*values, (other, 0.0))).value == suite_score(scored(*values)).value


@given(st.lists(st.tuples(rates, weights), min_size=1, max_size=6), st.randoms())
def test_the_order_of_benchmarks_changes_nothing(values: list[tuple[float, float]], random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    assert suite_score(scored(*shuffled)).value == pytest.approx(suite_score(scored(*values)).value)


@given(st.lists(st.tuples(rates, weights), min_size=1, max_size=6))
def test_the_score_lies_between_the_smallest_and_the_largest(values: list[tuple[float, float]]) -> None:
    mean = geometric_mean(values)
    assert mean is not None
    assert min(v for v, _ in values) * (1 - 1e-9) <= mean <= max(v for v, _ in values) * (1 + 1e-9)


@given(st.lists(st.sampled_from([0.0, -1.0, math.nan, math.inf, 5.0]), min_size=1, max_size=3))
def test_a_rate_that_cannot_be_one_gives_no_score(values: list[float]) -> None:
    score = benchmark_score(on_devices("b", values))
    assert (score.value is None) == any(v != 5.0 for v in values)
