"""Which launches may decide, and which conditions are alike."""

from __future__ import annotations

from typing import Any

import builders
import pytest
from builders import measurement

from benchwright.core.conditions import DISTURBING, conditions_of, undecided, unlike
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, is_cpu_time, is_of_the_machine
from benchwright.core.note import Note
from benchwright.core.run import Launch


def sampled(metric: str, *values: float, **labels: str) -> Measurement:
    how: dict[str, Any] = {"direction": Direction.NEITHER, "source": "sampler", "aggregate": "average"}
    return measurement(*values, metric=metric, unit=None, labels=labels, **how)


def launch(*measurements: Measurement, kind: str | None = None, figure: str | None = None) -> Launch:
    notes = (Note(text="something", evidence=figure, kind=kind),) if kind else ()
    return builders.launch(*measurements, notes=notes)


def test_a_launch_of_which_nothing_was_recorded_may_decide() -> None:
    assert undecided([launch()] * 6) is None
    assert unlike([launch()] * 6, [launch()] * 6) is None


@pytest.mark.parametrize("kind", sorted(DISTURBING))
def test_disturbed_launches_cannot_decide_and_say_why(kind: str) -> None:
    why = undecided([launch(kind=kind, figure="got 50 % of the CPU time it wanted")] * 6)
    words = f"6 of 6 launches {DISTURBING[kind]}"
    assert why == Note(text=words, evidence="got 50 % of the CPU time it wanted", kind=kind)


def test_launches_disturbed_in_two_ways_say_both() -> None:
    why = undecided([launch(kind="busy", figure="got 50 %")] * 3 + [launch(kind="shared")] * 3)
    assert str(why) == (f"3 of 6 launches {DISTURBING['busy']} (got 50 %), 3 of 6 launches {DISTURBING['shared']}")


def test_a_power_cap_and_notes_about_something_else_do_not_keep_a_launch_from_deciding() -> None:
    assert undecided([launch(kind="power_cap"), launch(kind="unknown kind")]) is None


def test_one_disturbed_launch_in_five_is_borne_by_ranks_and_more_are_not() -> None:
    quiet, busy = launch(), launch(kind="busy")
    assert undecided([quiet] * 8 + [busy] * 2) is None
    assert undecided([quiet] * 7 + [busy] * 3) is not None


def test_time_that_the_hypervisor_takes_away_is_load_too() -> None:
    assert conditions_of(launch(sampled("cpu.steal", 0.0, 1.0))).disturbed == {}
    assert "busy" in conditions_of(launch(sampled("cpu.steal", 5.0, 9.0))).disturbed


def test_another_share_of_the_cpu_is_another_load() -> None:
    alone, half, third = (
        [launch(sampled("cpu.own_share", share), kind=kind)] * 3
        for share, kind in ((1.0, None), (0.5, "busy"), (0.34, "busy"))
    )
    assert str(unlike(alone, half)) == "measured under different load: got 100 % and 50 % of the CPU time they wanted"
    assert unlike(half, third) is not None
    assert unlike(half, half) is None


def test_a_low_share_without_other_programs_is_no_other_load() -> None:
    few, many = ([launch(sampled("cpu.own_share", share))] * 3 for share in (1.0, 0.5))
    assert unlike(few, many) is None


def test_load_on_one_side_only_is_another_load_even_where_no_share_is_known() -> None:
    why = unlike([launch()] * 3, [launch(kind="busy")] * 3)
    assert why is not None
    assert "3 of 3 launches ran while the machine was busy" in why.text


def test_another_clock_of_a_gpu_is_another_condition() -> None:
    fast, slow = ([launch(sampled("gpu.clock", mhz, device="0"))] * 3 for mhz in (1755.0, 1410.0))
    assert str(unlike(fast, slow)) == "GPU 0 ran at different clocks: 1,755 and 1,410 MHz"
    assert unlike(fast, [launch(sampled("gpu.clock", 1740.0, device="0"))] * 3) is None


def test_launches_too_short_to_show_the_load_cannot_decide_if_the_machine_was_busy_when_their_run_began() -> None:
    before = Note(text="the machine was busy before this run began (load 13.0 on 2 cores)", kind="busy")
    short, seen = launch(), launch(sampled("cpu.others", 0.5))
    why = undecided([short] * 6, [before])
    assert str(why) == f"its launches are too short to show other load, and {before.text}"
    assert undecided([seen] * 6, [before]) is None
    assert undecided([short] * 6, [Note(text="imported")]) is None
    crowded = launch(sampled("cpu.others", 80.0), sampled("cpu.idle", 0.5))
    assert "others used all cores" in str(undecided([crowded] * 6))
    assert undecided([launch(sampled("cpu.others", 80.0), sampled("cpu.idle", 20.0))] * 6) is None


def test_how_long_a_launch_waited_is_its_first_threads_if_that_did_the_work() -> None:
    def waited(ran_s: float, cpu_s: float, **more: float) -> tuple[float | None, float | None]:
        cpu = measurement(cpu_s, metric="process.cpu_time", unit="s", source="process")
        steal = [sampled("cpu.steal", more["steal"])] if "steal" in more else []
        share = [sampled("cpu.own_share", more["share"])] if "share" in more else []
        usage = {"main_ran_s": ran_s, "main_waited_s": 0.02}
        of = builders.launch(cpu, *steal, *share, duration_s=0.1, facts={"usage": usage})
        found = conditions_of(of)
        return found.waited_s, found.waited_share

    assert waited(0.01, 0.01) == (0.02, pytest.approx(0.2))
    assert waited(0.01, 0.04) == (None, pytest.approx(0.2))  # others did most of it: it waited at least as long
    assert waited(0.01, 0.04, share=0.5) == (None, pytest.approx(0.4))  # 0.8 cores wanted, half of them had
    assert waited(0.01, 0.2, share=0.5) == (None, pytest.approx(0.5))
    assert waited(0.01, 0.01, steal=3.0)[0] == 0.02
    assert waited(0.01, 0.01, steal=10.0)[0] is None  # what the hypervisor took is no waiting of the thread


def test_how_long_processes_waited_that_worked_one_after_the_other_is_how_long_the_launch_did() -> None:
    cpu = measurement(0.1, metric="process.cpu_time", unit="s", source="process")

    def waited(ran_s: float, together: float, waited_s: float = 0.3) -> tuple[float | None, float | None]:
        usage = {"main_ran_s": 0.002, "main_waited_s": 0.02, "seen_ran_s": ran_s, "seen_waited_s": waited_s}
        of = builders.launch(cpu, duration_s=1.0, facts={"usage": usage | {"seen_together": together}})
        return conditions_of(of).waited_s, conditions_of(of).waited_share

    assert waited(0.095, 0.03) == (0.3, pytest.approx(0.3))
    assert waited(0.095, 0.2) == (None, pytest.approx(0.02))  # several waited at the same time
    assert waited(0.095, 0.0, 0.95) == (None, pytest.approx(0.95))  # there was no time for that
    assert waited(0.07, 0.0) == (None, pytest.approx(0.02))  # too much was done by processes that were not seen


@pytest.mark.parametrize(
    ("metric", "unit", "expected"),
    [
        *(("rate", "items/s", True), ("process.duration", "s", True), ("speed", None, True), ("ttft_ms", "ms", True)),
        *(("memory.peak_rss", "B", False), ("loss", None, False), ("accuracy", "%", False), ("error_time", "s", True)),
        *(("memory.peak_pss", "B", True), ("flops_per_item.fp32", None, False)),
    ],
)
def test_which_metrics_the_machine_has_a_part_in(metric: str, unit: str | None, expected: bool) -> None:
    assert is_of_the_machine(metric, unit) is expected


@pytest.mark.parametrize(
    ("metric", "unit", "expected"),
    [
        ("process.cpu_time", "s", True),
        ("cpu", "s", True),
        ("cpuTime", "ms", True),
        ("NET cpu_time", "us", True),
        ("latency_cpu", "ms", False),
        ("cpu_latency", "ms", False),
        ("cpu", "%", False),
        ("process.duration", "s", False),
    ],
)
def test_a_programs_own_cpu_time_is_known_by_its_name_and_unit(metric: str, unit: str, expected: bool) -> None:
    assert is_cpu_time(metric, unit) is expected


def test_launches_that_could_use_other_numbers_of_cores_are_unlike_and_decide_among_themselves() -> None:
    whole, half = [launch()] * 6, [launch(kind="affinity", figure="1 of 2")] * 6
    assert undecided(half) is None
    assert unlike(half, half) is None
    assert str(unlike(whole, half)) == "could use different numbers of cores: all and 1 of 2"
    assert str(unlike(half, [*half[1:], whole[0]])) == "could use different numbers of cores: 1 of 2 and 1 of 2, all"
