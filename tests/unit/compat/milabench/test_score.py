"""milabench's own figures, bias and all."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from suite_runs import failed, launch, measured, on_devices, result, run

from benchwright.compat.milabench.score import milabench_row, milabench_score
from benchwright.core.measurement import Measurement
from benchwright.core.run import Launch
from benchwright.core.status import Status


def imported(*rates: float, success: bool = True, device: int | None = None, weight: float = 1.0) -> Launch:
    facts = {"milabench": {"success": success, "device": device, "weight": weight, "enabled": True}}
    return launch(*rates, facts=facts)


def test_from_five_rates_on_the_smallest_and_the_largest_are_left_out() -> None:
    row = milabench_row(result("b", imported(1.0, 10.0, 30.0), imported(20.0, 900.0)))
    assert row.perf == pytest.approx(20.0)
    assert row.std == pytest.approx(math.sqrt(200 / 3) / 20)
    assert row.sem == pytest.approx(row.std / math.sqrt(3))
    assert milabench_row(result("b", imported(1.0, 10.0, 30.0, 900.0))).perf == pytest.approx(941 / 4)


def test_warm_up_is_pooled_as_they_do() -> None:
    warm = Launch(
        job="b", status=Status.OK, exit_code=0, measurements=(measured("rate", 30.0, warmup_samples=(10.0,)),)
    )
    assert milabench_row(result("b", warm)).perf == pytest.approx(20.0)


def test_devices_are_summed_by_their_own_means() -> None:
    row = milabench_row(result("b", imported(10.0, 20.0, device=0), imported(100.0, device=1)))
    assert (row.score, row.per_device) == (pytest.approx(115.0), {"0": 15.0, "1": 100.0})
    assert milabench_row(result("b", imported(10.0, 20.0), imported(30.0))).score == pytest.approx(20.0)


def test_failed_launches_lower_the_score_in_proportion() -> None:
    row = milabench_row(result("b", imported(10.0), imported(10.0, success=False), status=Status.FAILED))
    assert (row.n, row.fail, row.score) == (2, 1, pytest.approx(5.0))


def test_the_score_of_all_has_their_bias() -> None:
    score = milabench_score(run(result("a", imported(99.0, weight=2.0)), result("b", imported(9999.0))))
    assert score.value == pytest.approx((100**2 * 10000) ** (1 / 3))
    assert score.passed
    assert milabench_score(run(failed("a"))).value == pytest.approx(1.0)  # their 1.00 of nothing


def test_what_was_not_run_has_a_row_even_with_weight_0() -> None:
    """As milabench's report has one for each benchmark of its configuration."""
    score = milabench_score(run(result("a", imported(99.0))), weights={"a": 1.0, "b": 0.0})
    assert [(row.name, row.n, row.weight) for row in score.rows] == [("a", 1, 1.0), ("b", 0, 0.0)]
    assert score.value == pytest.approx(100)


def test_weights_that_are_given_replace_those_of_the_run_and_what_was_not_run_counts_as_0() -> None:
    score = milabench_score(run(result("a", imported(99.0, weight=7.0))), weights={"a": 1.0, "b": 1.0}, price=20.0)
    assert score.value == pytest.approx(10.0)
    assert score.price_per_score == pytest.approx(2.0)
    assert [row.n for row in score.rows] == [1, 0]


def test_a_run_of_ours_is_judged_by_their_rule() -> None:
    stopped = launch(5.0, exit_code=1, status=Status.FAILED, facts={"loops": [{"stop": {"rule": "steps"}}]})
    crashed = launch(5.0, exit_code=1, status=Status.FAILED)
    diverged = launch(5.0, more=(measured("loss", math.nan, unit=None, source="give"),))
    rateless = Launch(job="b", status=Status.OK, exit_code=0)
    cut_off = launch(
        5.0, exit_code=1, status=Status.FAILED, facts={"loops": [{"stop": {"rule": "steps", "by": "loop"}}]}
    )
    asked = launch(5.0, exit_code=None, facts={"reported": {"early_stop": True}})  # and was ended by us
    for one, fails in (
        (stopped, 0),
        (asked, 0),
        (cut_off, 1),
        (crashed, 1),
        (diverged, 1),
        (rateless, 1),
        (launch(5.0), 0),
    ):
        assert milabench_row(result("b", one)).fail == fails
    assert milabench_row(on_devices("b", (10.0, 30.0))).score == pytest.approx(40.0)


def test_a_failure_rate_of_one_percent_passes() -> None:
    assert milabench_score(run(result("a", *[imported(1.0)] * 99, imported(1.0, success=False)))).passed
    assert not milabench_score(run(result("a", *[imported(1.0)] * 49, imported(1.0, success=False)))).passed


def test_the_peak_of_memory_is_of_busy_moments_without_the_very_largest() -> None:
    def sampled(metric: str, *values: float) -> Measurement:
        return measured(metric, *values, unit="B", source="sampler", labels={"device": "0"})

    mib = [n * 2.0**20 for n in (1, 2, 3, 4, 5, 9)]
    more = (sampled("gpu.memory", *mib), sampled("gpu.load", 50, 50, 50, 50, 50, 0))
    assert milabench_row(result("b", launch(1.0, more=more))).peak_memory_mib == 4
    assert milabench_row(result("b", launch(1.0, more=more[:1]))).peak_memory_mib == 5
    assert milabench_row(result("b", launch(1.0))).peak_memory_mib is None


def test_ngpu_is_that_of_one_process() -> None:
    def said(ngpu: int) -> Launch:
        return launch(1.0, facts={"milabench": {"success": True, "ngpu": ngpu}})

    assert milabench_row(result("b", said(0), said(8))).ngpu == 8  # of a failed one it may be 0
    assert milabench_row(on_devices("b", (10.0, 30.0))).ngpu == 1
    assert milabench_row(result("b", launch(1.0))).ngpu == 0


def test_energy_is_that_of_the_first_process_and_perf_is_divided_by_its_kilowatts() -> None:
    def said(energy: tuple[float, float] | None) -> Launch:
        return launch(30.0, facts={"milabench": {"success": True, "energy": energy}})

    row = milabench_row(result("b", said((1.5, 5.0)), said((99.0, 1.0))))
    assert (row.energy_kj, row.perf_watt) == (1.5, pytest.approx(30 / 0.3))
    unknown = milabench_row(result("b", said(None)))
    assert (unknown.energy_kj, unknown.perf_watt) == (None, None)
    assert milabench_row(result("b", said((0.0, 5.0)))).perf_watt is None


def test_energy_of_a_run_of_ours_is_what_its_sampler_saw() -> None:
    used = measured("gpu.energy", 3000.0, unit="J", source="sampler", labels={"device": "0"})
    row = milabench_row(result("b", replace(launch(30.0, more=(used,)), duration_s=10.0)))
    assert (row.energy_kj, row.perf_watt) == (3.0, pytest.approx(100.0))


def test_a_file_that_their_report_leaves_out_counts_nowhere() -> None:
    broken = launch(5.0, facts={"milabench": {"success": False, "counted": False, "device": None}})
    row = milabench_row(result("b", imported(10.0), broken))
    assert (row.n, row.fail, row.perf) == (1, 0, 10.0)
    both = milabench_score(run(result("a", imported(99.0)), result("b", broken)))
    assert ([row.name for row in both.rows], both.value) == (["a"], pytest.approx(100.0))
    assert [text.partition(" ")[0] for text in both.left_out] == ["b"]


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=12), st.randoms())
def test_the_order_of_rates_changes_nothing(rates: list[float], random: object) -> None:
    shuffled = list(rates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    before, after = (milabench_row(result("b", imported(*values))) for values in (rates, shuffled))
    assert (before.perf, before.std) == (pytest.approx(after.perf), pytest.approx(after.std))
