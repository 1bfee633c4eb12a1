"""From events to measurements and a verdict."""

from __future__ import annotations

import math
from typing import Any

import builders
import msgspec
import pytest
from builders import benchmark

from benchwright.analysis.comparison.disturbances import disturbs
from benchwright.analysis.summary import launch_value
from benchwright.core.conditions import conditions_of
from benchwright.core.job import Job, JobBarrier
from benchwright.core.metric import MetricSpec
from benchwright.core.note import Note
from benchwright.core.run import Launch
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import StopRule
from benchwright.kinds.registry import kind_of
from benchwright.record import record_launch

Event = dict[str, Any]
JOB = builders.job(id="b.D0", benchmark="b")
START: Event = {"event": "start", "pid": 7, "t": 0, "wall": 0.0}
END: Event = {"event": "end", "exit_code": 0, "duration_s": 2.0, "cpu_s": 1.5, "max_rss_bytes": 1000}


def steps(phase: str, step_ns: list[int], **fields: Any) -> Event:
    base = {"event": "steps", "process": 7, "loop": 1, "first": 0, "phase": phase, "t": 100}
    return base | {"step_ns": step_ns, "wait_ns": [0] * len(step_ns), "items": 10} | fields


def loop(**fields: Any) -> Event:
    return {"event": "loop", "process": 7, "loop": 1, "name": "train", "counts": True, "t": 0} | fields


def recorded(*events: Event, job: Job = JOB, **fields: Any) -> Launch:
    return record_launch([START, *events, END], job, benchmark(**fields), kind_of)


def samples(launch: Launch, metric: str) -> tuple[float, ...]:
    found = launch.measurement(metric)
    assert found is not None, f"no {metric} in {[m.metric for m in launch.measurements]}"
    return found.samples


def number(launch: Launch, metric: str) -> float:
    """The launch's one number, as reports show it."""
    found = launch.measurement(metric)
    assert found is not None, f"no {metric} in {[m.metric for m in launch.measurements]}"
    return launch_value(found)


def test_a_rate_is_items_over_the_whole_step() -> None:
    launch = recorded(loop(), steps("measured", [1_000_000_000, 500_000_000]))
    assert samples(launch, "rate") == (10.0, 20.0)
    assert number(launch, "rate") == pytest.approx(20 / 1.5)
    assert launch.status is Status.OK


def test_warm_up_steps_are_kept_but_do_not_count() -> None:
    launch = recorded(loop(), steps("warmup", [9_000_000_000]), steps("measured", [1_000_000_000]))
    rate = launch.measurement("rate")
    assert rate is not None
    assert rate.samples == (10.0,)
    assert rate.warmup_samples == (pytest.approx(10 / 9),)


def test_steps_after_the_stop_do_not_count() -> None:
    launch = recorded(loop(), steps("measured", [1_000_000_000]), steps("after", [7_000_000_000]))
    assert samples(launch, "step_time") == (1.0,)


def test_an_accelerators_own_clock_gives_the_step_times_and_the_rate() -> None:
    """The host only queued the work: its own stamps would give a rate a hundred times too high."""
    event = steps(
        "measured", [10_000_000, 10_000_000], device_ns=[1_000_000_000, 1_000_000_000], window_ns=2_000_000_000
    )
    launch = recorded(loop(), event)
    assert samples(launch, "rate") == (10.0, 10.0)
    assert number(launch, "rate") == 10.0


def test_a_short_last_batch_counts_its_own_items() -> None:
    launch = recorded(loop(), steps("measured", [1_000_000_000] * 2, items=[10, 3]))
    assert samples(launch, "rate") == (10.0, 3.0)


def test_unknown_batch_sizes_give_steps_not_items() -> None:
    launch = recorded(loop(), steps("measured", [500_000_000], items=None))
    rate = launch.measurement("rate")
    assert rate is not None
    assert (rate.unit, rate.samples) == ("steps/s", (2.0,))


def test_a_loop_that_ended_before_it_settled_counts_all_but_its_first_step_and_says_so() -> None:
    launch = recorded(loop(), steps("warmup", [8_000_000_000, 1_000_000_000, 1_000_000_000]))
    assert samples(launch, "step_time") == (1.0, 1.0)
    assert number(launch, "rate") == pytest.approx(10.0)
    assert any("finished during warm-up" in note.text for note in launch.notes)


def test_ranks_are_kept_apart_and_added_up() -> None:
    events = []
    for rank in range(2):
        events += [
            {"event": "probe", "process": rank, "rank": rank},
            loop(process=rank),
            steps("measured", [1_000_000_000], process=rank),
        ]
    launch = recorded(*events)
    rates = [m for m in launch.measurements if m.metric == "rate"]
    assert sorted(m.labels.get("rank", "all") for m in rates) == ["0", "1", "all"]
    assert next(m for m in rates if "rank" not in m.labels).samples == (20.0,)


def test_a_second_process_without_a_rank_is_not_counted_twice() -> None:
    events = [
        loop(),
        steps("measured", [1_000_000_000]),
        loop(process=8),
        steps("measured", [1_000_000_000], process=8),
    ]
    launch = recorded(*events)
    assert [m.samples for m in launch.measurements if m.metric == "rate"] == [(10.0,)]
    (other,) = [m for m in launch.measurements if m.metric == "train.rate"]
    assert (other.samples, other.labels) == ((10.0,), {"loop": "train", "process": "1"})
    assert "1 more" in [note.evidence for note in launch.notes]


def test_a_nan_loss_is_invalid_whatever_the_exit_code() -> None:
    launch = recorded(loop(), steps("measured", [1, 1], given={"loss": [[0, 1], [0.5, math.nan]]}))
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)
    assert "loss became nan" in (launch.detail or "")


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"exit_code": 3}, Reason.CRASHED),
        ({"exit_code": None}, Reason.CRASHED),
        ({"exit_code": None, "signal": 11}, Reason.SIGNALLED),
        ({"exit_code": None, "signal": 9, "timed_out": True}, Reason.TIMED_OUT),
        ({"exit_code": 1, "out_of_memory": True}, Reason.OUT_OF_MEMORY),
        ({"exit_code": 0, "detail": "the disk was full"}, Reason.INVALID),
    ],
)
def test_how_it_ended_decides_first(end: Event, reason: Reason) -> None:
    launch = record_launch(
        [START, loop(), steps("measured", [1000]), {"event": "end"} | end], JOB, benchmark(), kind_of
    )
    assert (launch.status, launch.reason) == (Status.FAILED, reason)
    assert launch.detail


def test_a_stream_without_an_end_is_never_a_success() -> None:
    launch = record_launch([START, loop(), steps("measured", [1000])], JOB, benchmark(), kind_of)
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.AGENT_LOST)


def test_a_job_that_ended_with_its_agent_is_not_said_to_be_signalled() -> None:
    launch = record_launch(
        [START, END | {"exit_code": None, "signal": 15, "agent_lost": True}], JOB, benchmark(), kind_of
    )
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.AGENT_LOST)


def test_a_stopped_job_is_interrupted_not_failed() -> None:
    launch = record_launch([START, END | {"exit_code": None, "signal": 15, "stopped": True}], JOB, benchmark(), kind_of)
    assert (launch.status, launch.reason) == (Status.INTERRUPTED, Reason.STOPPED)


def test_a_pattern_that_never_matched_fails_and_shows_the_nearest_lines() -> None:
    wanted = (MetricSpec(name="speed", pattern=r"Sped: (\d+)"),)
    extraction = {
        "event": "extraction",
        "metrics": {"speed": {"matches": 0, "nearest": [{"line": 4, "text": "Speed: 12"}]}},
    }
    launch = recorded(extraction, metrics=wanted)
    assert launch.reason is Reason.NO_DATA
    assert "line 4: Speed: 12" in (launch.detail or "")


def test_a_pattern_that_was_cut_off_is_named_as_such() -> None:
    wanted = (MetricSpec(name="speed", pattern=r"(a+)+$"),)
    launch = recorded({"event": "extraction", "metrics": {"speed": {"matches": 0, "cut_off": 2}}}, metrics=wanted)
    assert "took too long" in (launch.detail or "")


def test_log_values_keep_their_order_and_their_method() -> None:
    wanted = (MetricSpec(name="speed", pattern="x", aggregate="last"),)
    first, second = (
        {"event": "metric", "name": "speed", "values": [1, 2]},
        {"event": "metric", "name": "speed", "values": [3]},
    )
    launch = recorded(first, second, metrics=wanted)
    found = launch.measurement("speed")
    assert found is not None
    assert (found.samples, found.aggregate) == ((1.0, 2.0, 3.0), "last")


def test_the_peak_is_the_larger_of_what_was_sampled_and_what_the_kernel_saw() -> None:
    sample = {"event": "sample", "sampler": "process", "t": 1, "values": {"rss_bytes": 400}}
    assert samples(recorded(sample), "memory.peak_rss") == (1000,)
    assert samples(recorded(sample | {"values": {"rss_bytes": 5000}}), "memory.peak_rss") == (5000,)


def machine_sample(**values: float) -> Event:
    return {"event": "sample", "sampler": "machine", "t": 1, "values": values}


def busy_figures(launch: Launch) -> list[str]:
    return [note.evidence or "" for note in launch.notes if note.kind == "busy"]


def test_a_busy_machine_is_mentioned() -> None:
    assert busy_figures(recorded(machine_sample(own_share=0.8))) == ["got 80 % of the CPU time it wanted"]
    assert busy_figures(recorded(machine_sample(own_share=0.8, others_percent=50.0, idle_percent=0.0)))


def test_threads_that_only_wait_for_each_other_are_not_disturbed_by_others() -> None:
    assert not recorded(machine_sample(own_share=0.5, others_percent=0.4, idle_percent=1.0)).notes


def test_the_load_beside_a_program_disturbs_nothing_if_the_program_did_not_wait() -> None:
    assert not recorded(machine_sample(others_percent=98.0, idle_percent=0.0)).notes
    assert not recorded(machine_sample(own_share=0.99, others_percent=98.0, idle_percent=0.0)).notes


def test_a_program_that_a_control_group_held_back_waited_even_if_the_machine_was_idle() -> None:
    quiet = {"own_share": 0.5, "others_percent": 0.4, "idle_percent": 80.0}
    assert not recorded(machine_sample(**quiet, quota_percent=0.0)).notes
    assert busy_figures(recorded(machine_sample(**quiet, quota_percent=30.0)))


def test_a_program_that_mostly_sleeps_hardly_waits_for_a_core() -> None:
    def noted(share: float, cpu_s: float) -> tuple[Note, ...]:
        sample = machine_sample(own_share=share)
        end = END | {"cpu_s": cpu_s, "duration_s": 2.0}
        return record_launch([START, sample, end], JOB, benchmark(), kind_of).notes

    assert not noted(0.2, 0.01)  # it waited for 0.04 of 2 s
    assert noted(0.2, 0.02)
    assert noted(0.2, 0.2)
    assert not noted(0.6, 0.05)  # 0.033 of 2 s


def test_a_launch_of_milliseconds_is_busy_if_its_first_thread_had_to_wait_for_a_core() -> None:
    def figures(ran_s: float, waited_s: float, late_s: float = 0.0, **end: float) -> list[str]:
        usage = {"main_ran_s": ran_s, "main_waited_s": waited_s, "noticed_late_s": late_s}
        ended = END | {"t": 9, "cpu_s": 0.01, "duration_s": 0.02, "usage": usage} | end
        return busy_figures(record_launch([START, ended], JOB, benchmark(), kind_of))

    assert figures(0.01, 0.01) == ["got 50 % of the CPU time it wanted"]
    assert not figures(0.01, 0.0009)  # how long an idle core takes to wake up
    assert figures(0.01, 0.0, late_s=0.01) == ["got 50 % of the CPU time it wanted"]
    assert not figures(0.01, 0.0, late_s=0.01, duration_s=0.0102)  # the end was seen in another way
    assert not figures(0.01, 0.01, cpu_s=0.04)  # other threads did most of the work, and it may have waited for them


def test_a_short_launch_of_several_processes_is_busy_if_they_had_to_wait_one_after_the_other() -> None:
    def figures(together: float) -> list[str]:
        usage = {"main_ran_s": 0.002, "main_waited_s": 0.0, "seen_ran_s": 0.02, "seen_waited_s": 0.02}
        ended = END | {"t": 9, "cpu_s": 0.02, "duration_s": 0.1, "usage": usage | {"seen_together": together}}
        return busy_figures(record_launch([START, ended], JOB, benchmark(), kind_of))

    assert figures(0.0) == ["got 50 % of the CPU time it wanted"]
    assert figures(0.5) == []  # they may have waited for each other


def test_a_launch_of_several_processes_waited_at_least_as_long_as_its_first_thread() -> None:
    def figures(waited_s: float, **machine: float) -> list[str]:
        usage = {"main_ran_s": 0.02, "main_waited_s": waited_s}
        ended = END | {"t": 9, "cpu_s": 0.08, "duration_s": 0.25, "usage": usage}
        return busy_figures(record_launch([START, machine_sample(**machine), ended], JOB, benchmark(), kind_of))

    assert figures(0.05, others_percent=80.0, idle_percent=0.0) == ["waited for a core for at least 20 % of its time"]
    assert not figures(0.05, others_percent=1.0, idle_percent=50.0)  # for its own processes
    assert not figures(0.005, others_percent=80.0, idle_percent=0.0)


def test_energy_is_the_difference_of_the_drivers_counter() -> None:
    events = [
        {"event": "sample", "sampler": "nvidia", "device": 0, "t": t, "values": {"energy_j": e}}
        for t, e in ((1, 50.0), (2, 80.0))
    ]
    launch = recorded(*events)
    energy = launch.measurement("gpu.energy")
    assert energy is not None
    assert (energy.samples, energy.labels) == ((30.0,), {"device": "0"})


def test_broken_lines_and_events_are_counted_not_fatal() -> None:
    launch = recorded({"event": "unreadable"}, {"event": "steps", "process": 7, "loop": 1}, {"event": "of the future"})
    assert launch.status is Status.OK
    assert any(note.evidence == "2 lines" for note in launch.notes)


def test_fewer_steps_than_asked_for_are_mentioned() -> None:
    launch = recorded(loop(), steps("measured", [1000] * 3), stop=StopRule(steps=5))
    assert any("3 of the 5" in note.text for note in launch.notes)


@pytest.mark.parametrize("rule", [StopRule(seconds=30.0), StopRule(precision=0.01), StopRule(observations=5)])
def test_a_loop_that_ended_before_its_stop_rule_was_met_says_so(rule: StopRule) -> None:
    events = [loop(), steps("measured", [1000] * 3)]
    stopped = {"event": "stop", "process": 7, "loop": 1, "rule": "seconds", "steps": 3, "detail": {}}
    said = "loop 'train' ended before its stop rule was met"
    assert said in [note.text for note in recorded(*events, stop=rule).notes]
    assert said not in [note.text for note in recorded(*events, stopped, stop=rule).notes]


def test_a_rule_that_the_loop_did_not_live_to_see_says_how_far_it_came() -> None:
    found = [{"first": n, "steps": 1, "ns": 1000} for n in range(2)]
    stop = {"event": "stop", "process": 7, "loop": 1, "rule": "observations", "steps": 3, "by": "loop"}
    stop["detail"] = {"interval_s": 1e-6, "observations": found}
    launch = recorded(loop(), steps("measured", [1000] * 3), stop, stop=StopRule(observations=5))
    assert "loop 'train' ended after 2 of the 5 observations to be measured" in [note.text for note in launch.notes]
    timed = stop | {"rule": "seconds", "detail": {}}
    launch = recorded(loop(), steps("measured", [1000] * 3), timed, stop=StopRule(seconds=5))
    assert any("before its stop rule was met" in note.text for note in launch.notes)


@pytest.mark.parametrize("phase", ["warmup", "measured", "after"])
def test_a_loss_that_diverges_counts_whenever_it_does(phase: str) -> None:
    """Also while a process that was measured enough runs on for the others."""
    parts = [
        steps(p, [1000] * 2, given={"loss": [[0, 1], [0.5, math.nan if p == phase else 0.4]]})
        for p in ("warmup", "measured", "after")
    ]
    launch = recorded(loop(), *parts)
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)
    assert "loss became nan" in (launch.detail or "")
    fine = recorded(loop(), *[steps(p, [1000], given={"loss": [[0], [0.5]]}) for p in ("warmup", "measured", "after")])
    assert fine.status is Status.OK
    assert samples(fine, "loss") == (0.5,)


def test_jobs_that_ran_together_are_labelled() -> None:
    job = msgspec.structs.replace(JOB, barrier=JobBarrier(folder="/b", size=2, rank=1))
    launch = recorded(loop(), steps("measured", [1000]), job=job)
    assert {m.labels["job"] for m in launch.measurements} == {"1"}


def test_nodes_of_one_launch_are_labelled_and_a_node_by_itself_is_not() -> None:
    """Else what two nodes measured side by side would pass for two launches."""
    measured = loop(), steps("measured", [1000])
    one = msgspec.structs.replace(JOB, node="first")
    assert all("node" not in m.labels for m in recorded(*measured, job=one).measurements)
    two = msgspec.structs.replace(one, machines=2, barrier=JobBarrier(folder="/b", size=2, rank=1))
    assert all(
        m.labels.items() >= {"node": "first", "job": "1"}.items() for m in recorded(*measured, job=two).measurements
    )


def test_power_and_load_are_those_of_the_measured_steps_not_of_the_programs_start() -> None:
    def sampled(t: int, watts: float) -> Event:
        return {"event": "sample", "sampler": "nvidia", "device": 0, "t": t, "values": {"power_w": watts}}

    measured = steps("measured", [1000], t=5000)
    launch = recorded(loop(), sampled(10, 80.0), measured, sampled(5500, 600.0), sampled(9000, 90.0))
    power = launch.measurement("gpu.power")
    assert power is not None
    assert (power.samples, power.warmup_samples) == ((600.0,), (80.0,))


def test_lost_events_are_said_and_added_up() -> None:
    launch = recorded({"event": "lost", "t": 1, "events": 3}, {"event": "lost", "t": 2, "events": 4})
    (note,) = [note for note in launch.notes if "lost" in note.text]
    assert note.text.startswith("7 events were lost")
    assert note.severity == "error"


def test_the_ranks_are_not_added_up_when_one_of_them_measured_nothing() -> None:
    events = [
        {"event": "probe", "process": 0, "rank": 0},
        loop(process=0),
        steps("measured", [1_000_000_000], process=0),
        {"event": "probe", "process": 1, "rank": 1},
        loop(process=1),
        steps("warmup", [1_000_000_000], process=1),
    ]
    rates = [m for m in recorded(*events).measurements if m.metric == "rate"]
    assert [m.labels for m in rates] == [{"loop": "train", "rank": "0"}]


def test_the_time_of_measuring_is_from_the_first_rank_to_the_last() -> None:
    events = []
    for rank, begins in ((0, 5000), (1, 7000)):
        events += [
            {"event": "probe", "process": rank, "rank": rank},
            loop(process=rank),
            steps("measured", [1000], process=rank, t=begins),
        ]
    assert recorded(*events).facts["measured_ns"] == (5000, 8000)


def test_a_peak_that_is_only_a_bound_is_labelled_so() -> None:
    launch = record_launch([START, END | {"max_rss_is_bound": True}], JOB, benchmark(), kind_of)
    peak, known = launch.measurement("memory.peak_rss"), recorded().measurement("memory.peak_rss")
    assert peak is not None
    assert known is not None
    assert (peak.labels, known.labels) == ({"bound": "upper"}, {})


def test_the_time_and_the_cpu_time_of_the_process_are_told_apart() -> None:
    launch = recorded()
    assert (samples(launch, "process.duration"), samples(launch, "process.cpu_time")) == ((2.0,), (1.5,))


def test_everything_given_outside_a_loop_is_kept_and_its_last_value_stands_for_it() -> None:
    first, second = ({"event": "give", "t": n, "values": {"accuracy": n / 10, "comment": "no number"}} for n in (5, 7))
    given = recorded(first, second).measurement("accuracy")
    assert given is not None
    assert (given.samples, given.aggregate, given.source) == ((0.5, 0.7), "last", "give")
    assert recorded(first).measurement("comment") is None


def test_what_was_given_after_the_stop_does_not_count() -> None:
    launch = recorded(
        loop(),
        steps("warmup", [1000], given={"loss": [[0], [3.0]]}),
        steps("measured", [1000], given={"loss": [[0], [2.0]]}),
        steps("after", [1000], given={"loss": [[0], [1.0]]}),
    )
    loss = launch.measurement("loss")
    assert loss is not None
    assert (loss.samples, loss.warmup_samples) == ((2.0,), (3.0,))


def test_what_was_given_before_a_loop_settled_counts_where_nothing_else_does() -> None:
    launch = recorded(loop(), steps("warmup", [1000] * 3, given={"loss": [[0, 1, 2], [3.0, 2.0, 1.0]]}))
    loss = launch.measurement("loss")
    assert loss is not None
    assert (loss.samples, loss.warmup_samples) == ((3.0, 2.0, 1.0), ())


def test_steps_are_counted_where_the_batch_size_of_one_is_unknown() -> None:
    launch = recorded(loop(), steps("measured", [500_000_000] * 2, items=[10, None]))
    rate = launch.measurement("rate")
    assert rate is not None
    assert (rate.unit, rate.samples) == ("steps/s", (2.0, 2.0))
    assert any("batch size of some steps is unknown" in note.text for note in launch.notes)


@pytest.mark.parametrize(("reached", "noted"), [(False, True), (True, False)])
def test_a_cap_that_came_before_the_precision_is_mentioned(reached: bool, noted: bool) -> None:
    detail = {"reached": reached, "half_width": 0.034}
    stop = {"event": "stop", "process": 7, "loop": 1, "rule": "precision", "steps": 3, "detail": detail}
    launch = recorded(loop(), steps("measured", [1000] * 3), stop)
    assert any("before it was precise enough (± 3.4 %)" in note.text for note in launch.notes) is noted


def test_a_loop_that_ended_before_it_was_precise_says_so_even_if_nothing_is_known() -> None:
    detail = {"reached": False, "half_width": None}
    stop = {"event": "stop", "process": 7, "loop": 1, "rule": "precision", "steps": 3, "detail": detail, "by": "loop"}
    launch = recorded(loop(), steps("measured", [1000] * 3), stop)
    assert any("ended before it was precise enough (too few steps" in note.text for note in launch.notes)


def test_every_reason_for_a_lower_clock_that_was_ever_seen_is_named() -> None:
    events = [
        {"event": "sample", "sampler": "nvidia", "device": 1, "t": t, "values": {"throttle": mask}}
        for t, mask in ((1, 0x4), (2, 0x20), (3, 0x0), (4, 0x1))  # 0x1: idle, nothing wrong with that
    ]
    notes = [note.text for note in recorded(*events).notes]
    assert notes == ["GPU 1 lowered its clock: power cap, thermal limit"]
    assert recorded(events[3]).notes == ()
    # A power cap alone is what a GPU at full work has: it does not keep a launch from deciding.
    assert [recorded(*events).notes[0].kind, recorded(events[0]).notes[0].kind] == ["throttled", "power_cap"]


def test_a_lowered_clock_says_how_often_and_how_far_and_only_while_measured() -> None:
    second = 1_000_000_000
    loop_ = [
        {"event": "loop", "process": 1, "loop": 1, "name": "train", "counts": True},
        {"event": "steps", "process": 1, "loop": 1, "first": 0, "phase": "measured", "t": 2 * second}
        | {"step_ns": [second] * 4, "wait_ns": [0] * 4, "items": 5},
    ]

    def seen(*masks: int) -> list[Note]:
        clocks = [1980, 1980, 1400, 1410, 1420, 1410, 1980]
        samples = [
            {"event": "sample", "sampler": "nvidia", "device": 0, "t": t * second + 1}
            | {"values": {"throttle": mask, "sm_clock_mhz": clock}}
            for t, (mask, clock) in enumerate(zip(masks, clocks, strict=True))
        ]
        return [note for note in recorded(*samples, *loop_).notes if "clock" in note.text]

    (note,) = seen(0, 0, 4, 4, 0, 4, 0)
    assert note.evidence == "in 3 of 4 samples, at 1,410 of 1,980 MHz"
    assert seen(4, 0x40, 0, 0, 0, 0, 0x40) == [], "before and after, which explains nothing"


def test_what_a_gpu_uses_at_rest_is_told_apart_from_the_work() -> None:
    second = 1_000_000_000

    def sampled(loads: tuple[int, ...]) -> Launch:
        samples = [
            {"event": "sample", "sampler": "nvidia", "device": 0, "t": t * second}
            | {"values": {"energy_j": joules, "power_w": watts, "load_percent": load}}
            for t, (joules, watts, load) in enumerate(
                zip((0, 80, 400, 1000, 1600, 2200), (80, 95, 500, 600, 600, 600), loads, strict=True)
            )
        ]
        loop_ = [
            {"event": "loop", "process": 1, "loop": 1, "name": "train", "counts": True},
            {"event": "steps", "process": 1, "loop": 1, "first": 0, "phase": "measured", "t": 2 * second}
            | {"step_ns": [second] * 3, "wait_ns": [0] * 3, "items": 5},
        ]
        return recorded(*samples, *loop_)

    launch = sampled((0, 0, 90, 100, 100, 100))
    found = {m.metric: m.samples[0] for m in launch.measurements if m.metric.startswith(("energy.", "gpu.idle"))}
    assert found == {"energy.item": 120.0, "energy.item_above_idle": (1800.0 - 3 * 80.0) / 15, "gpu.idle_power": 80.0}
    assert sampled((100,) * 6).measurement("energy.item_above_idle") is None, "never seen at rest"


def test_a_gpu_that_another_program_used_too_is_mentioned() -> None:
    def of(*percents: float) -> Launch:
        sample = {"event": "sample", "sampler": "nvidia", "device": 0}
        return recorded(*(sample | {"t": t, "values": {"others_percent": p}} for t, p in enumerate(percents)))

    (note,) = of(0, 60, 30).notes
    assert (note.text, note.evidence, note.kind) == (
        "another program also used GPU 0",
        "had it alone 70 % of the time",
        "shared",
    )
    assert of(0, 0, 2).notes == ()
    assert samples(of(0, 60, 30), "gpu.others") == (0, 60, 30)


def test_memory_over_time_is_condensed_to_its_highest() -> None:
    events = [
        {"event": "sample", "sampler": "process", "t": t, "values": {"rss_bytes": rss, "pss_bytes": rss // 2}}
        for t, rss in ((1, 10), (2, 30), (3, 20))
    ]
    launch = recorded(*events)
    for metric, expected in (("memory.rss", (10.0, 30.0, 20.0)), ("memory.pss", (5.0, 15.0, 10.0))):
        found = launch.measurement(metric)
        assert found is not None
        assert (found.samples, found.aggregate) == (expected, "max")


def test_a_loss_in_the_log_that_is_not_finite_is_invalid_too() -> None:
    wanted = (MetricSpec(name="train_loss", pattern="x"),)
    launch = recorded({"event": "metric", "name": "train_loss", "values": [0.5, math.inf]}, metrics=wanted)
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)


def test_a_metric_that_is_not_required_may_be_absent() -> None:
    wanted = MetricSpec(name="speed", pattern="x")
    assert recorded(metrics=(wanted,)).reason is Reason.NO_DATA
    optional = MetricSpec(name="speed", pattern="x", required=False)
    assert recorded(metrics=(optional,)).status is Status.OK


def extraction(**facts: Any) -> Event:
    return {"event": "extraction", "metrics": {"speed": {"matches": 2, "unparsed": 0, "cut_off": 0} | facts}}


SPEEDS: Event = {"event": "metric", "t": 1, "name": "speed", "values": [1.0, 3.0], "lines": [1, 3]}
SPEED = MetricSpec(name="speed", pattern="speed: (.*)")


def test_matches_that_held_no_number_are_noted_beside_those_that_did() -> None:
    launch = recorded(SPEEDS, extraction(unparsed=1), metrics=(SPEED,))
    assert launch.status is Status.OK
    assert [(n.text, n.evidence) for n in launch.notes] == [
        ("some matches of the pattern of 'speed' held no number and do not count", "1 of 3")
    ]


def test_lines_on_which_a_pattern_was_cut_off_are_noted() -> None:
    launch = recorded(SPEEDS, extraction(cut_off=1, cut_off_lines=[2]), metrics=(SPEED,))
    assert launch.status is Status.OK
    assert "took too long on some lines" in launch.notes[0].text


def test_values_of_a_part_of_the_log_are_no_success() -> None:
    launch = recorded(SPEEDS, extraction(cut_off=3, cut_off_lines=[4, 5, 6], given_up=True), metrics=(SPEED,))
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)
    assert launch.detail is not None
    assert "lines 4, 5, 6" in launch.detail


def test_a_value_that_is_not_finite_is_noted_where_it_is_no_loss() -> None:
    launch = recorded({**SPEEDS, "values": [1.0, 2.0, math.inf]}, extraction(), metrics=(SPEED,))
    assert launch.status is Status.OK
    assert [(n.text, n.evidence) for n in launch.notes] == [("some values of 'speed' are not finite", "1 of 3")]


def test_a_loop_that_does_not_exist_is_said_with_those_that_do() -> None:
    launch = recorded(loop(counts=False), steps("measured", [1000]), stop=StopRule(steps=5), loop="trian")
    assert (launch.reason, launch.detail) == (
        Reason.NO_DATA,
        "no loop is called 'trian'; name one with --loop: 'train'",
    )


def test_energy_of_an_item_is_that_of_the_measured_time() -> None:
    second = 1_000_000_000
    counter = [
        {"event": "sample", "sampler": "nvidia", "device": 0, "t": t * second, "values": {"energy_j": e}}
        for t, e in ((0, 1000.0), (2, 1200.0), (4, 1600.0))
    ]
    loop = [
        {"event": "loop", "process": 1, "loop": 1, "name": "train", "counts": True},
        {"event": "steps", "process": 1, "loop": 1, "first": 0, "phase": "measured", "t": second}
        | {"step_ns": [second, second], "wait_ns": [0, 0], "items": 5},
    ]
    measured = recorded(*counter, *loop).measurement("energy.item")
    assert measured is not None
    assert measured.samples == ((1400.0 - 1100.0) / 10,)  # from 1 s to 3 s
    assert recorded(*counter[:2], *loop).measurement("energy.item") is None  # nothing is known of the last second


SECOND = 1_000_000_000


def test_gpu_time_is_the_time_all_devices_were_busy_and_cpu_time_counts_the_measured_steps_only() -> None:
    def sampled(sampler: str, t: float, **values: float) -> Event:
        device = {"device": 0} if sampler == "nvidia" else {}
        return {"event": "sample", "sampler": sampler, "t": int(t * SECOND), "values": values} | device

    loads = [sampled("nvidia", t, load_percent=p) for t, p in ((0, 90.0), (2, 50.0), (3, 100.0), (4, 50.0), (6, 0.0))]
    cpu = [sampled("process", t, cpu_s=s) for t, s in ((0, 0.0), (2, 2.0), (3, 2.5), (4, 3.0))]
    measured = steps("measured", [SECOND, SECOND], t=2 * SECOND)
    end = END | {"t": 6 * SECOND, "cpu_s": 10.0}

    def of(*sampled: Event) -> Launch:
        return record_launch([START, *sampled, loop(), measured, end], JOB, benchmark(), kind_of)

    launch = of(*loads, *cpu)
    assert samples(launch, "process.gpu_time") == (pytest.approx(1.0 + 1.0 + 0.5),)
    assert samples(launch, "gpu.step_time") == (pytest.approx(1.5 / 2),)
    assert samples(launch, "cpu.step_time") == (pytest.approx(1.0 / 2),)
    assert of(*cpu).measurement("process.gpu_time") is None
    assert samples(of(*cpu[2:]), "cpu.step_time") == (pytest.approx(1.0 / 2),)  # by its second half
    assert of(cpu[0], cpu[3]).measurement("cpu.step_time") is None  # what surrounds it tells nothing of it


def test_cpu_time_of_a_short_loop_is_read_from_the_clock_of_its_only_process() -> None:
    def launch(*, until: float = 0.21, processes: float = 1) -> Launch:
        about = {"process": 7, "loop": 1}
        return record_launch(
            [
                START,
                {"event": "sample", "sampler": "process", "t": 0, "values": {"cpu_s": 0.0, "processes": processes}},
                loop(),
                {"event": "measure", **about, "t": int(0.1 * SECOND), "cpu_ns": 5_000_000},
                steps("measured", [SECOND // 20] * 2, t=int(0.1 * SECOND)),
                {"event": "stop", **about, "t": int(until * SECOND), "cpu_ns": 65_000_000},
                END | {"t": SECOND, "cpu_s": 10.0},
            ],
            JOB,
            benchmark(),
            kind_of,
        )

    assert samples(launch(), "cpu.step_time") == (pytest.approx(0.030),)
    assert launch(processes=2).measurement("cpu.step_time") is None  # others worked, too, and were not sampled
    assert launch(until=0.3).measurement("cpu.step_time") is None  # it did something else afterwards


def test_a_gpu_that_stops_working_right_after_the_loop_used_no_less_energy_in_it() -> None:
    """600 W until the loop ends at 6.9 s, 100 W after; sampled each second from 0.5 s on."""
    second = 1_000_000_000

    def counter(t: float) -> float:
        return 600.0 * min(t, 6.9) + 100.0 * max(0.0, t - 6.9)

    samples = [
        {"event": "sample", "sampler": "nvidia", "device": 0, "t": int(t * second), "values": {"energy_j": counter(t)}}
        for t in (n + 0.5 for n in range(9))
    ]
    loop = [
        {"event": "loop", "process": 1, "loop": 1, "name": "train", "counts": True},
        {"event": "steps", "process": 1, "loop": 1, "first": 0, "phase": "measured", "t": int(0.9 * second)}
        | {"step_ns": [second] * 6, "wait_ns": [0] * 6, "items": 1},
    ]
    measured = recorded(*samples, *loop).measurement("energy.item")
    assert measured is not None
    assert measured.samples == (pytest.approx(600.0),)  # interpolated, it would be 580


def test_what_runs_between_two_epochs_is_no_part_of_an_items_energy() -> None:
    """Two epochs of 4 s at 100 W, and a validation of 4 s at 1,000 W between them."""
    second = 1_000_000_000
    used = [100 * t if t <= 5 else 500 + 1000 * (t - 5) if t <= 9 else 4500 + 100 * (t - 9) for t in range(15)]
    counter = [
        {"event": "sample", "sampler": "nvidia", "device": 0, "t": t * second, "values": {"energy_j": e}}
        for t, e in enumerate(used)
    ]
    epochs: list[dict[str, Any]] = [{"event": "loop", "process": 1, "loop": 1, "name": "train", "counts": True}]
    for begin in (1, 9):
        epochs.append(
            {"event": "steps", "process": 1, "loop": 1, "first": 0, "phase": "measured", "t": begin * second}
            | {"step_ns": [second] * 4, "wait_ns": [0] * 4, "items": 5}
        )
    measured = recorded(*counter, *epochs).measurement("energy.item")
    assert measured is not None
    assert measured.samples == (800 / 40,)
    # Sampled too seldom, the epochs cannot be told from the validation.
    assert recorded(*counter[::7], *epochs).measurement("energy.item") is None


SECOND = 1_000_000_000


def names(launch: Launch) -> set[str]:
    return {m.metric for m in launch.measurements}


def test_an_inner_loop_named_train_takes_the_role_from_the_loop_around_it() -> None:
    launch = recorded(
        loop(name="epoch"),
        loop(name="epoch", counts=False),
        loop(loop=2),
        steps("measured", [SECOND // 100] * 50, loop=2),
        steps("measured", [SECOND], items=None),
    )
    assert number(launch, "rate") == pytest.approx(1000)
    assert number(launch, "epoch.rate") == 1.0
    assert [x["name"] for x in launch.facts["loops"]] == ["train"]


def test_a_loop_that_ended_before_train_began_does_not_count() -> None:
    """It cannot say so itself any more: that another one counts later says it."""
    launch = recorded(
        loop(name="sanity"),
        steps("measured", [SECOND] * 3),
        loop(loop=2),
        steps("measured", [SECOND // 10] * 3, loop=2),
    )
    assert (number(launch, "rate"), number(launch, "sanity.rate")) == (pytest.approx(100), pytest.approx(10))


def test_train_counts_also_if_another_process_had_a_loop_first() -> None:
    launch = recorded(
        loop(name="sanity"),
        steps("measured", [SECOND] * 3),
        loop(process=8),
        steps("measured", [SECOND // 10] * 3, process=8),
    )
    assert (number(launch, "rate"), number(launch, "sanity.rate")) == (pytest.approx(100), pytest.approx(10))


def test_what_a_loop_did_after_the_one_inside_was_ended_by_its_rule_is_no_measurement() -> None:
    """An epoch without its steps takes no time: 40,000 of them a second."""
    launch = recorded(
        loop(name="epoch", counts=False, loop=2),
        loop(),
        steps("measured", [SECOND] * 2, t=0),
        {"event": "loop_end", "process": 7, "loop": 1, "steps": 2, "how": "stopped", "t": 2 * SECOND},
        steps("measured", [2 * SECOND - 5, 10, 1000, 1000, 1000], loop=2, items=None, t=0),
    )
    assert samples(launch, "epoch.rate") == (pytest.approx(0.5),)


def test_the_busier_loop_is_pointed_out_where_none_is_called_train() -> None:
    launch = recorded(
        loop(name="epoch"), steps("measured", [SECOND]), loop(name="batch", loop=2, counts=False),
        steps("measured", [1000] * 9, loop=2),
    )  # fmt: skip
    assert any("'batch' has more steps; choose with --loop NAME" in note.text for note in launch.notes)


def test_loops_of_one_name_in_several_ranks_are_not_pooled() -> None:
    events = []
    for rank in range(3):
        events += [
            {"event": "probe", "process": rank, "rank": rank},
            loop(process=rank),
            steps("measured", [SECOND], process=rank),
            loop(process=rank, loop=2, name="eval", counts=False),
            steps("measured", [SECOND], process=rank, loop=2),
        ]
    launch = recorded(*events)
    keys = [(m.metric, m.source, tuple(sorted(m.labels.items()))) for m in launch.measurements]
    assert len(keys) == len(set(keys))
    assert (number(launch, "eval.rate"), number(launch, "rate")) == (30.0, 30.0)


def test_a_rank_that_was_started_anew_counts_once() -> None:
    events = []
    for process, rank, count in ((1, 0, 2), (2, 1, 5), (3, 0, 5)):
        events += [
            {"event": "probe", "process": process, "rank": rank},
            loop(process=process),
            steps("measured", [SECOND] * count, process=process),
        ]
    assert number(recorded(*events), "rate") == 20.0


def test_what_is_given_under_the_name_of_a_measured_metric_is_another_series() -> None:
    launch = recorded(
        loop(), steps("measured", [SECOND] * 2, given={"rate": [[0, 1], [7.0, 7.0]], "step_time": [[0, 1], [2.0, 2.0]]})
    )
    assert (samples(launch, "rate"), samples(launch, "given.rate")) == ((10.0, 10.0), (7.0, 7.0))
    assert (samples(launch, "step_time"), samples(launch, "given.step_time")) == ((1.0, 1.0), (2.0, 2.0))
    assert "the program's own 'rate' is shown as 'given.rate'" in [n.text for n in launch.notes]


@pytest.mark.parametrize("name", ["process.duration", "memory.peak_rss", "cpu.use", "gpu.power", "energy.item"])
def test_what_is_given_never_joins_what_is_sampled(name: str) -> None:
    launch = recorded({"event": "give", "t": 1, "process": 7, "values": {name: 50.0}})
    assert samples(launch, f"given.{name}") == (50.0,)
    assert name not in names(launch) or 50.0 not in samples(launch, name)


def test_what_the_log_says_of_a_rate_does_not_join_the_loops() -> None:
    wanted = (MetricSpec(name="rate", pattern="x"),)
    launch = recorded(loop(), steps("measured", [SECOND]), {**SPEEDS, "name": "rate", "values": [3.0]}, metrics=wanted)
    assert (samples(launch, "rate"), samples(launch, "log.rate")) == ((10.0,), (3.0,))
    assert launch.status is Status.OK


def test_of_two_values_of_one_name_that_a_program_says_the_one_asked_for_keeps_it() -> None:
    given_too = {"event": "give", "t": 1, "process": 7, "values": {"speed": 4.0}}
    launch = recorded({**SPEEDS, "values": [3.0]}, given_too, metrics=(SPEED,))
    assert (samples(launch, "speed"), samples(launch, "given.speed")) == ((3.0,), (4.0,))


@pytest.mark.parametrize(
    ("name", "values", "why"),
    [
        ("speed", [math.nan], "speed is nan"),
        ("speed", [math.inf], "speed is inf"),
        ("speed", [5.0, math.nan, 6.0], "speed is nan"),
        ("speed", [0.0], "speed is 0, which no rate can be"),
        ("speed", [-3.0], "speed is -3, which no rate can be"),
        ("latency_ms", [0.0], "latency_ms is 0, which no time can be"),
        ("epoch_time", [-1.5], "epoch_time is -1.5, which no time can be"),
    ],
)
def test_a_number_that_cannot_be_one_is_invalid(name: str, values: list[float], why: str) -> None:
    launch = recorded({**SPEEDS, "name": name, "values": values}, metrics=(MetricSpec(name=name, pattern="x"),))
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)
    assert why in (launch.detail or "")


@pytest.mark.parametrize(("name", "value"), [("accuracy", 0.0), ("reward", -3.0), ("wait_time", 0.0), ("loss", -1.0)])
def test_zero_and_negative_numbers_are_results_where_they_make_sense(name: str, value: float) -> None:
    launch = recorded({**SPEEDS, "name": name, "values": [value]}, metrics=(MetricSpec(name=name, pattern="x"),))
    assert launch.status is Status.OK


def test_a_zero_among_many_rates_is_noted() -> None:
    launch = recorded({**SPEEDS, "values": [0.0, 5.0, 6.0]}, metrics=(SPEED,))
    assert launch.status is Status.OK
    assert ("some values of 'speed' are zero or negative, which no rate can be", "1 of 3") in [
        (n.text, n.evidence) for n in launch.notes
    ]


def test_a_loop_without_a_step_is_no_success() -> None:
    launch = recorded(loop(), {"event": "loop_end", "process": 7, "loop": 1, "steps": 0, "how": "exhausted", "t": 9})
    assert (launch.reason, launch.detail) == (Reason.NO_DATA, "loop 'train' completed no step")


def test_a_train_loop_without_a_step_is_no_success_though_another_loop_ran() -> None:
    launch = recorded(loop(name="sanity"), steps("measured", [SECOND]), loop(loop=2))
    assert (launch.reason, launch.detail) == (Reason.NO_DATA, "loop 'train' completed no step")


@pytest.mark.parametrize("items", [0, -4])
def test_a_loop_that_counts_no_items_is_invalid(items: int) -> None:
    launch = recorded(loop(), steps("measured", [SECOND], items=items))
    assert launch.reason is Reason.INVALID


def test_a_step_that_ended_before_it_began_makes_the_launch_invalid() -> None:
    launch = recorded(loop(), steps("measured", [SECOND, -1_990_000_000, SECOND]))
    assert (launch.reason, launch.detail) == (
        Reason.INVALID,
        "loop 'train': the clock went back by 1.99 s during a step",
    )


def test_the_share_of_time_spent_waiting_for_data_is_kept() -> None:
    launch = recorded(loop(), steps("measured", [SECOND] * 4, wait_ns=[0, SECOND, 0, SECOND]))
    assert number(launch, "wait_share") == 50.0
    assert number(launch, "step_rate") == 10.0


@pytest.mark.compat
def test_a_voir_rate_beside_a_loop_of_ours_keeps_its_own_name() -> None:
    said = ['{"task": "train", "rate": 5.0}'] * 3
    launch = recorded(
        loop(), steps("measured", [SECOND]), {"event": "reported", "dialect": "voir", "t": 5, "lines": said}
    )
    assert (samples(launch, "rate"), number(launch, "voir.rate")) == ((10.0,), 5.0)


def ended(how: str) -> Event:
    return {"event": "loop_end", "process": 7, "loop": 1, "steps": 3, "how": how, "t": 9 * SECOND}


def test_a_step_left_by_break_does_not_count() -> None:
    """`if step == 2: break` at the top of the loop: its batch was taken, but nothing was done with it."""
    launch = recorded(loop(), steps("measured", [SECOND, SECOND, 10]), ended("break"))
    assert samples(launch, "step_time") == (1.0, 1.0)
    assert number(launch, "rate") == 10.0
    assert launch.facts["loops"][0]["steps"]["measured"] == 2


def test_a_loop_left_in_its_only_step_is_no_success() -> None:
    """Whether that step was whole or left at once, nobody can tell."""
    launch = recorded(loop(), steps("measured", [SECOND]), ended("break"))
    assert (launch.reason, launch.detail) == (Reason.NO_DATA, "loop 'train' completed no step")


def test_a_loop_that_is_left_in_every_epoch_loses_the_last_step_of_each() -> None:
    epoch = (loop(), steps("measured", [SECOND, SECOND, 5]), ended("break"))
    launch = recorded(*epoch, *epoch, *epoch)
    assert samples(launch, "step_time") == (1.0,) * 6


def test_what_several_processes_give_outside_of_loops_is_not_pooled() -> None:
    given = [{"event": "give", "t": 1, "process": p, "values": {"accuracy": 0.1 * p}} for p in (3, 1, 2)]
    probes = [{"event": "probe", "process": p, "rank": p - 1} for p in (3, 1, 2)]
    launch = recorded(*probes, *given)
    found = [(m.labels, m.samples) for m in launch.measurements if m.metric == "accuracy"]
    assert found == [({}, (0.1,)), ({"rank": "1"}, (0.2,)), ({"rank": "2"}, (pytest.approx(0.3),))]
    assert number(launch, "accuracy") == 0.1


def test_a_loop_that_was_stopped_before_train_began_cuts_no_other_loop_short() -> None:
    launch = recorded(
        loop(name="sanity"),
        steps("measured", [SECOND] * 2, t=0),
        {"event": "loop_end", "process": 7, "loop": 1, "steps": 2, "how": "stopped", "t": 2 * SECOND},
        loop(loop=2, name="epoch", counts=False),
        loop(loop=3),
        steps("measured", [SECOND], loop=3, t=3 * SECOND),
        steps("measured", [SECOND] * 2, loop=2, items=None, t=3 * SECOND),
    )
    assert samples(launch, "epoch.rate") == (1.0, 1.0)


def test_results_told_after_the_programs_end_do_not_count_but_those_of_before_do_even_if_written_late() -> None:
    exit_ = {"event": "exit", "t": 100}
    before, after = ({"event": "give", "process": 7, "t": t, "values": {"x": float(t)}} for t in (90, 110))
    launch = recorded(exit_, before, after)
    assert samples(launch, "x") == (90.0,)
    [note] = [n for n in launch.notes if "outlived the program" in n.text]
    assert note.evidence == "1 events"
    late_steps = steps("measured", [1_000_000_000]) | {"t": 200}
    assert not any(m.metric == "rate" for m in recorded(exit_, loop(), late_steps).measurements)


def test_time_in_which_something_stood_still_is_told_with_how_long_it_was() -> None:
    stops = [{"event": "pause", "t": t, "what": "program", "ns": 2_000_000_000} for t in (1, 5)]
    launch = recorded(*stops, {"event": "pause", "t": 1, "what": "machine", "ns": 60_000_000_000})
    assert [(n.kind, n.evidence) for n in launch.notes] == [("suspended", "4.0 s"), ("suspended", "60.0 s")]


def memory_sample(t: int, **values: float) -> Event:
    return {"event": "sample", "sampler": "process", "t": t, "values": values}


def test_the_peak_of_pss_is_told_where_it_was_read_near_the_peak_and_only_there() -> None:
    """END has a kernel's maximum of 1000."""
    near = recorded(memory_sample(1, rss_bytes=4000), memory_sample(2, rss_bytes=5000, pss_bytes=1100))
    assert (samples(near, "memory.peak_pss"), samples(near, "memory.peak_rss")) == ((1100,), (5000,))
    far = recorded(memory_sample(1, rss_bytes=4000, pss_bytes=900), memory_sample(2, rss_bytes=5000))
    assert far.measurement("memory.peak_pss") is None
    assert samples(far, "memory.peak_rss") == (5000,)
    between = recorded(memory_sample(1, rss_bytes=500, pss_bytes=450))  # the kernel saw more than any sample
    assert between.measurement("memory.peak_pss") is None


def test_loops_of_one_name_in_threads_of_a_process_are_kept_apart() -> None:
    """Only one of them counts: the steps of both in one series would last longer than the process lived."""
    launch = recorded(
        loop(),
        loop(loop=2, counts=False),
        steps("measured", [SECOND], loop=2, items=7),
        steps("measured", [SECOND]),
        {"event": "loop_end", "process": 7, "loop": 2, "steps": 1, "how": "exhausted", "t": 9},
    )
    assert (number(launch, "rate"), number(launch, "train.rate")) == (10.0, 7.0)


def test_steps_that_take_longer_than_the_program_lived_are_invalid() -> None:
    launch = recorded(loop(), steps("measured", [SECOND] * 5))
    assert launch.reason is Reason.INVALID
    assert "its steps add up to 5 s, but the program ran for 2 s" in (launch.detail or "")


def test_a_launch_on_a_node_with_jobs_of_others_is_marked_and_decides_nothing() -> None:
    """As the scheduler told the main process, which adds it once the stream has ended."""
    launch = record_launch([START, END, {"event": "shared", "jobs": ["12", "14"]}], JOB, benchmark(), kind_of)
    assert launch.status is Status.OK
    [mark] = [note for note in launch.notes if note.kind == "shared_node"]
    assert mark.evidence == "jobs 12, 14"
    kinds = frozenset(conditions_of(launch).disturbed)
    assert kinds == {"shared_node"}
    assert disturbs(kinds, "process.cpu_time", "s")  # caches are shared, too
    assert disturbs(kinds, "process.duration", "s")
    assert not disturbs(kinds, "loss", None)


def test_a_launch_that_could_use_only_some_cores_is_marked_and_may_decide() -> None:
    narrowed = START | {"allowed_cores": 1, "all_cores": 2}
    launch = record_launch([narrowed, END], JOB, benchmark(), kind_of)
    [mark] = [note for note in launch.notes if note.kind == "affinity"]
    assert str(mark) == "could use only some of the machine's cores (1 of 2)"
    assert conditions_of(launch).disturbed == {}
    assert recorded().notes == ()
