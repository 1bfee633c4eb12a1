"""What was done in a second, compared with what the machine can do."""

from __future__ import annotations

import math
from typing import Any

import pytest
from efficient_runs import busy_cores, own_share, peak, told, working
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from suite_runs import benchmark, launch, measured, on_devices, result

from benchwright.analysis.efficiency import (
    efficiencies,
    peaks_of,
    run_efficiencies,
    too_much,
    with_peak_checked,
)
from benchwright.core.benchmark import Placement
from benchwright.core.efficiency import (
    BYTES,
    CPU,
    DEVICE,
    FLOPS,
    MEMORY,
    Efficiency,
    Peak,
    PeakShare,
    Work,
    share_of_peak,
)
from benchwright.core.note import Note
from benchwright.core.run import Check, CheckStatus, Result
from benchwright.core.status import Status

FP32 = Work(FLOPS, "fp32", CPU)
positive = st.floats(1e-6, 1e15)


def one(of: Result, *beside: Result) -> Efficiency:
    (found,) = run_efficiencies([of, *beside])[of.benchmark.name]
    return found


def checks(of: Result, *beside: Result) -> dict[str, Check]:
    return {c.layer: c for c in with_peak_checked(of, peaks_of([of, *beside]))}


def test_processes_of_a_launch_add_up_and_of_launches_the_median_counts() -> None:
    launches = [
        working(rate, per_item=2.0, position=p, seat=s) for p in range(3) for s, rate in enumerate((10.0 * p, 5.0 + p))
    ]
    found = one(result("b", *launches[2:]))
    assert (found.work, found.per_item, found.unit) == (FP32, 2.0, "FLOP/s")
    assert found.achieved == 2.0 * (16.0 + 27.0) / 2
    assert (found.peak, found.share) == (None, None)


def test_a_share_is_of_what_a_benchmark_tagged_so_reached_in_the_same_run() -> None:
    found = one(result("b", working(3.0, per_item=10.0)), peak([100.0]))
    assert found.peak == Peak(value=100.0, benchmark="matmul")
    assert found.share == pytest.approx(0.3)


def test_a_peak_is_what_the_best_launch_sustained() -> None:
    """Not what its fastest steps reached: no benchmark could keep that up."""
    steps = [50.0] * 70 + [100.0] * 30
    assert peaks_of([peak(steps)])[FP32].value == 50.0
    again = peak(steps)
    repeated = replace(again, launches=(*again.launches, working(300.0, position=1, more=(own_share(1.0),))))
    assert peaks_of([repeated, peak([120.0], "other")])[FP32] == Peak(value=300.0, benchmark="matmul")


def test_other_precisions_and_places_are_not_held_against_each_other() -> None:
    in_bf16 = peak([100.0], "matmul-bf16", name="flops_per_item.bf16")
    assert one(result("b", working(3.0)), in_bf16).peak is None
    on_gpu = result("b", working(3.0, on_device=True, devices=(0,)))
    assert one(on_gpu, peak([100.0])).peak is None
    assert one(on_gpu, peak([100.0], on_device=True, devices=(0,))).share == pytest.approx(0.03)


def test_a_program_on_the_host_of_a_gpu_machine_is_held_against_the_host() -> None:
    host = result("b", working(3.0, on_device=False, devices=(0,)))
    assert one(host, peak([100.0], on_device=False, devices=(0,))).work.place == CPU
    assert one(result("b", working(3.0, devices=(0,)))).work.place == DEVICE  # nothing else is known of it


@pytest.mark.parametrize("reason", ["pinned", "failed", "not tagged"])
def test_what_is_no_peak_of_the_machine(reason: str) -> None:
    measured_so = peak([100.0])
    if reason == "pinned":
        measured_so = replace(measured_so, benchmark=replace(measured_so.benchmark, placement=Placement(cores=(0,))))
    if reason == "failed":
        measured_so = replace(measured_so, status=Status.FAILED)
    if reason == "not tagged":
        measured_so = replace(measured_so, benchmark=benchmark("matmul"))
    assert peaks_of([measured_so]) == {}


def each(name: str, *rates: float, tags: tuple[str, ...] = ()) -> Result:
    """One process for each device."""
    launches = [working(rate, seat=d, devices=(d,), on_device=True) for d, rate in enumerate(rates)]
    return result(name, *launches, of=benchmark(name, tags=tags, placement=Placement(per_device=True)))


def test_devices_are_counted_on_both_sides() -> None:
    peaks = each("matmul", 100.0, 90.0, 110.0, 100.0, tags=("peak",))
    assert peaks_of([peaks])[Work(FLOPS, "fp32", DEVICE)].value == 100.0
    assert one(each("b", 50.0), peaks).share == pytest.approx(0.5)
    assert one(each("b", 50.0, 50.0, 50.0, 50.0), peaks).share == pytest.approx(0.5)


def ranks(name: str, rate: float, count: int, devices: tuple[int, ...], **fields: Any) -> Result:
    """One launcher, with the rate of each rank and of all."""
    single = [measured("rate", rate / count, labels={"rank": str(r)}) for r in range(count)]
    whole = measured("rate", rate, labels={"ranks": str(count)})
    facts = {"started": True, "loops": [{"on_device": bool(devices)}]}
    process = replace(launch(1.0, devices=devices, facts=facts), measurements=(*single, whole, told(1.0)))
    return result(name, process, of=benchmark(name, **fields))


def test_ranks_of_a_launcher_count_as_processes() -> None:
    single = peak([100.0], on_device=True, devices=(0,))
    assert one(ranks("b", 200.0, 4, (0, 1, 2, 3)), single).share == pytest.approx(0.5)
    assert one(ranks("b", 200.0, 2, (0, 1, 2, 3)), single).share == pytest.approx(1.0)
    assert peaks_of([ranks("all", 400.0, 4, (0, 1, 2, 3), tags=("peak",))])[Work(FLOPS, "fp32", DEVICE)].value == 100.0
    assert one(ranks("b", 50.0, 2, ()), peak([100.0])).share == pytest.approx(0.5)  # they share the processors


def test_a_peak_measured_by_one_process_that_sees_all_devices_is_that_of_one_device() -> None:
    alone = peak([100.0], on_device=True, devices=(0, 1, 2, 3))
    assert peaks_of([alone])[Work(FLOPS, "fp32", DEVICE)].value == 100.0
    model_parallel = result("b", working(200.0, on_device=True, devices=(0, 1, 2, 3)))
    assert one(model_parallel, alone).share == pytest.approx(0.5)


def test_on_several_machines_each_has_a_peak() -> None:
    nodes = [working(40.0, seat=0), launch(40.0, seat=0)]  # only the first rank tells what an item is
    two = result("b", *nodes, of=benchmark("b", placement=Placement(machines=2)))
    assert one(two, peak([100.0])).share == pytest.approx(0.4)


def test_without_items_nothing_is_known() -> None:
    steps = replace(working(3.0), measurements=(measured("rate", 3.0, unit="steps/s"), told(1.0)))
    assert run_efficiencies([result("b", steps), result("c", launch(3.0)), on_devices("d", (5.0,))]) == {}
    assert run_efficiencies([result("b", working(0.0)), result("c", working(math.nan))]) == {}


def test_bytes_have_peaks_of_their_own_and_are_shown_where_there_is_no_arithmetic() -> None:
    moved = result("b", working(3.0, name="bytes_per_item", more=(told(1.0, "flops_per_item.fp32"),)))
    stream = peak([4.0], "stream", name="bytes_per_item")
    (flops, bytes_) = run_efficiencies([moved, stream])["b"]
    assert (flops.work.quantity, bytes_.work.quantity, bytes_.unit) == (FLOPS, BYTES, "B/s")
    assert share_of_peak([flops, bytes_]) is None
    assert share_of_peak([bytes_]) == PeakShare(0.75)
    assert share_of_peak([]) is None
    ways = result("c", working(3.0, name="bytes_per_item.host_to_device"))
    assert one(ways, stream).peak is None


@pytest.mark.parametrize(
    ("memory", "share"),
    [
        (4.0, PeakShare(0.75, MEMORY)),  # 3 of 4 B/s, and 30 of 100 FLOP/s
        (20.0, PeakShare(0.3, "fp32")),
        (2.0, PeakShare(0.3)),  # more than the memory moves: caches did
    ],
)
def test_what_takes_longer_at_its_peak_limits(memory: float, share: PeakShare) -> None:
    both = result("b", working(3.0, per_item=10.0, more=(told(1.0, name="bytes_per_item"),)))
    beside = [peak([100.0]), peak([memory], "stream", name="bytes_per_item")]
    found = share_of_peak(run_efficiencies([both, *beside])["b"])
    assert found == share


def test_copies_between_host_and_device_are_no_share_of_the_memory() -> None:
    copied = told(1.0, name="bytes_per_item.host_to_device")
    both = result("b", working(3.0, per_item=10.0, more=(copied,)))
    bus = peak([4.0], "copies", name="bytes_per_item.host_to_device")
    assert share_of_peak(run_efficiencies([both, peak([100.0]), bus])["b"]) == PeakShare(0.3)


def test_shares_of_several_precisions_add_up() -> None:
    both = result("b", working(10.0, name="flops_per_item.bf16", more=(told(2.0),)))
    found = run_efficiencies([both, peak([100.0]), peak([50.0], "m16", name="flops_per_item.bf16")])["b"]
    share = share_of_peak(found)
    assert share is not None
    assert share.value == pytest.approx(20 / 100 + 10 / 50)
    assert share.limit is None, "nothing is known of the memory"
    assert share_of_peak(run_efficiencies([both, peak([100.0])])["b"]) is None


def test_more_than_the_peak_of_the_same_run_is_a_failure_that_says_why() -> None:
    bad = checks(result("b", working(150.0, per_item=1e10)), peak([100.0], per_item=1e10))["plausibility"]
    assert bad.status is CheckStatus.FAILED
    assert bad.explanation.startswith(
        "1.5 TFLOP/s in fp32 is 150 % of the 1 TFLOP/s that matmul sustained: it claims too much arithmetic"
    )


@pytest.mark.parametrize(("rate", "status"), [(104.9, None), (105.1, CheckStatus.FAILED)])
def test_a_little_more_may_be_noise(rate: float, status: CheckStatus | None) -> None:
    found = checks(result("b", working(rate)), peak([100.0])).get("plausibility")
    assert (found and found.status) == status


def test_a_peak_that_had_to_share_the_cores_gives_no_share_and_proves_nothing() -> None:
    bad = peak([48.0], got=0.34)
    found = one(result("b", working(3.0)), bad)
    assert (found.share, found.why_no_share) == (None, "matmul got 34 % of the CPU time it wanted")
    assert one(bad).share is None
    check = checks(result("b", working(150.0)), bad)["plausibility"]
    assert check.status is CheckStatus.WARNED
    assert "matmul got 34 % of the CPU time it wanted" in check.explanation


def test_a_peak_of_a_device_needs_no_cores() -> None:
    on_gpu = peak([100.0], got=0.5, on_device=True, devices=(0,))
    fast = result("b", working(150.0, on_device=True, devices=(0,)))
    assert checks(fast, on_gpu)["plausibility"].status is CheckStatus.FAILED
    slow = result("b", working(50.0, on_device=True, devices=(0,)))
    assert one(slow, on_gpu).share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("kind", "place", "trusted"),
    [
        ("busy", CPU, False),
        ("busy", DEVICE, True),  # it is the device's peak
        ("throttled", DEVICE, False),
        ("power_cap", DEVICE, True),  # what a device can sustain
        ("suspended", CPU, False),
        (None, CPU, True),
    ],
)
def test_a_disturbed_launch_is_no_peak(kind: str | None, place: str, trusted: bool) -> None:
    note = Note(text="something happened", evidence="4 s", kind=kind)
    on_device = {"on_device": True, "devices": (0,)} if place == DEVICE else {}
    found = peaks_of([peak([100.0], notes=(note,), **on_device)])[Work(FLOPS, "fp32", place)]
    assert str(found.doubt) == ("None" if trusted else "matmul was disturbed: something happened (4 s)")


def test_a_trusted_launch_comes_before_a_higher_one_that_was_disturbed() -> None:
    both = peak([100.0])
    both = replace(both, launches=(*both.launches, working(200.0, position=1, more=(own_share(0.5),))))
    assert (peaks_of([both])[FP32].value, peaks_of([both])[FP32].doubt) == (100.0, None)


def test_arithmetic_of_a_process_that_hardly_ran_is_no_peak_and_bytes_may_be() -> None:
    cpu = measured("process.cpu_time", 0.1, unit="s", source="process")
    asleep = {"more": (cpu,), "duration_s": 10.0, "got": None}
    assert peaks_of([peak([100.0], **asleep)])[FP32].doubt == Note(text="matmul hardly used the processor")
    bytes_ = peaks_of([peak([100.0], name="bytes_per_item", **asleep)])
    assert bytes_[Work(BYTES, "", CPU)].doubt is None


def test_a_peak_of_which_it_is_not_known_whether_it_had_its_cores_is_none() -> None:
    found = one(result("b", working(3.0)), peak([100.0], got=None))
    assert found.share is None
    assert "too briefly to tell" in (found.why_no_share or "")


def test_threads_that_wait_for_each_other_do_not_spoil_a_peak_that_nobody_else_disturbed() -> None:
    alone = measured("cpu.others", 1.0, unit="%", source="sampler", aggregate="average")
    assert peaks_of([peak([100.0], got=0.6, more=(alone,))])[FP32].doubt is None
    stolen = measured("cpu.steal", 20.0, unit="%", source="sampler", aggregate="average")
    assert "80 % of the CPU time" in str(peaks_of([peak([100.0], more=(stolen,))])[FP32].doubt)


def test_a_peak_on_one_core_is_none_for_what_ran_on_many() -> None:
    many = result("b", working(150.0, more=(busy_cores(8.0),)))
    found = one(many, peak([100.0], more=(busy_cores(1.0),)))
    assert (found.share, found.why_no_share) == (None, "matmul kept 1.0 cores busy, this one 8.0")
    assert checks(many, peak([100.0], more=(busy_cores(1.0),)))["plausibility"].status is CheckStatus.WARNED
    assert one(many, peak([1000.0], more=(busy_cores(7.5),))).share == pytest.approx(0.15)


def test_more_than_all_is_no_share() -> None:
    found = one(result("b", working(9.0, name="bytes_per_item")), peak([4.0], name="bytes_per_item"))
    assert (found.share, found.ratio) == (None, pytest.approx(2.25))
    assert "caches serve a part of it" in (found.why_no_share or "")


def test_where_half_precision_is_slow_the_parts_in_fp32_may_be_faster() -> None:
    slow = peak([50.0], "m16", name="flops_per_item.bf16")
    mixed = result("b", working(80.0, name="flops_per_item.bf16"))
    assert "plausibility" in checks(mixed, slow)
    assert "plausibility" not in checks(mixed, slow, peak([100.0]))
    assert "plausibility" in checks(
        result("c", working(150.0)), peak([100.0]), peak([400.0], "m", name="flops_per_item.bf16")
    )


def test_bytes_from_a_cache_are_no_failure() -> None:
    assert checks(result("b", working(9.0, name="bytes_per_item")), peak([4.0], name="bytes_per_item")) == {}


def test_a_named_check_that_passed_says_the_share_too() -> None:
    passed = Check(layer="plausibility", status=CheckStatus.PASSED, explanation="9 counted in 3 s")
    found = checks(replace(result("b", working(30.0)), checks=(passed,)), peak([100.0]))["plausibility"]
    assert found.explanation == "9 counted in 3 s; 30 FLOP/s in fp32 is 30 % of the 100 FLOP/s that matmul sustained"


def test_peaks_of_another_run_are_used_where_this_one_has_none() -> None:
    other = {FP32: Peak(value=200.0, benchmark="old", run="r.1")}
    of = result("b", working(50.0))
    assert run_efficiencies([of], other)["b"][0].share == pytest.approx(0.25)
    assert run_efficiencies([of, peak([100.0])], other)["b"][0].share == pytest.approx(0.5)


@given(st.lists(positive, min_size=1, max_size=5), positive, positive, positive)
def test_a_share_does_not_depend_on_the_unit(rates: list[float], per_item: float, best: float, scale: float) -> None:
    def share(factor: float) -> float:
        of = result("b", *(working(r, per_item=per_item * factor, seat=s) for s, r in enumerate(rates)))
        found = one(of, peak([best], per_item=factor)).ratio
        assert found is not None
        return found

    assert share(scale) == pytest.approx(share(1.0), rel=1e-6)


@given(st.lists(st.lists(positive, min_size=1, max_size=4), min_size=1, max_size=4))
def test_what_measures_the_peak_is_never_beyond_it(launches: list[list[float]]) -> None:
    of = peak()
    known = (own_share(1.0),)
    of = replace(of, launches=tuple(working(*rates, position=p, more=known) for p, rates in enumerate(launches)))
    found = efficiencies(of, peaks_of([of]))
    assert not too_much(found)
    share = share_of_peak(found)
    assert share is not None
    assert share.value <= 1 + 1e-9


@given(st.lists(st.floats(), max_size=5), st.floats(), st.lists(st.floats(), max_size=5), st.booleans())
def test_numbers_that_are_none_give_no_share_and_no_error(
    rates: list[float], per_item: float, best: list[float], on_device: bool
) -> None:
    of = result("b", working(*rates, per_item=per_item, on_device=on_device))
    for found in run_efficiencies([of, peak(best, on_device=on_device)]).values():
        assert all(math.isfinite(e.achieved) and e.achieved > 0 for e in found)
    with_peak_checked(of, peaks_of([of, peak(best, on_device=on_device)]))
