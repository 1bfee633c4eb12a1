"""From events to measurements and a verdict."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from benchwright.domain.benchmark import Benchmark, Command
from benchwright.domain.job import Barrier, Job
from benchwright.domain.metric import MetricSpec
from benchwright.domain.run import Launch
from benchwright.domain.status import Reason, Status
from benchwright.domain.stop_rule import StopRule
from benchwright.recorder import record_launch

Event = dict[str, Any]
JOB = Job(id="b.D0", benchmark="b", argv=("x",), cwd="/", stream="/s", log="/l")
START: Event = {"event": "start", "pid": 7, "t": 0, "wall": 0.0}
END: Event = {"event": "end", "exit_code": 0, "duration_s": 2.0, "cpu_s": 1.5, "max_rss_bytes": 1000}


def benchmark(**fields: Any) -> Benchmark:
    return Benchmark(name="b", workload=Command(argv=("x",), cwd="/"), source="test", **fields)


def steps(phase: str, step_ns: list[int], **fields: Any) -> Event:
    base = {"event": "steps", "process": 7, "loop": 1, "first": 0, "phase": phase, "t": 100}
    return base | {"step_ns": step_ns, "wait_ns": [0] * len(step_ns), "items": 10} | fields


def loop(**fields: Any) -> Event:
    return {"event": "loop", "process": 7, "loop": 1, "name": "train", "counts": True, "t": 0} | fields


def recorded(*events: Event, job: Job = JOB, **fields: Any) -> Launch:
    return record_launch([START, *events, END], job, benchmark(**fields))


def samples(launch: Launch, metric: str) -> tuple[float, ...]:
    found = launch.measurement(metric)
    assert found is not None, f"no {metric} in {[m.metric for m in launch.measurements]}"
    return found.samples


def test_a_rate_is_items_over_the_whole_step() -> None:
    launch = recorded(loop(), steps("measured", [1_000_000_000, 500_000_000]))
    assert samples(launch, "rate") == (10.0, 20.0)
    assert samples(launch, "throughput") == (pytest.approx(20 / 1.5),)
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


def test_an_accelerators_own_clock_gives_the_step_times_and_the_window_the_throughput() -> None:
    """The host only queued the work: its own stamps would give a rate a hundred times too high."""
    event = steps(
        "measured", [10_000_000, 10_000_000], device_ns=[1_000_000_000, 1_000_000_000], window_ns=2_000_000_000
    )
    launch = recorded(loop(), event)
    assert samples(launch, "rate") == (10.0, 10.0)
    assert samples(launch, "throughput") == (10.0,)


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
    assert samples(launch, "throughput") == (pytest.approx(10.0),)
    assert any("before measuring began" in note.text for note in launch.notes)


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
    launch = record_launch([START, loop(), steps("measured", [1000]), {"event": "end"} | end], JOB, benchmark())
    assert (launch.status, launch.reason) == (Status.FAILED, reason)
    assert launch.detail


def test_a_stream_without_an_end_is_never_a_success() -> None:
    launch = record_launch([START, loop(), steps("measured", [1000])], JOB, benchmark())
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.AGENT_LOST)


def test_a_job_that_ended_with_its_agent_is_not_said_to_be_signalled() -> None:
    launch = record_launch([START, END | {"exit_code": None, "signal": 15, "agent_lost": True}], JOB, benchmark())
    assert (launch.status, launch.reason) == (Status.FAILED, Reason.AGENT_LOST)


def test_a_stopped_job_is_interrupted_not_failed() -> None:
    launch = record_launch([START, END | {"exit_code": None, "signal": 15, "stopped": True}], JOB, benchmark())
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
    assert samples(recorded(sample), "memory.peak") == (1000,)
    assert samples(recorded(sample | {"values": {"rss_bytes": 5000}}), "memory.peak") == (5000,)


def test_a_busy_machine_is_mentioned() -> None:
    sample = {"event": "sample", "sampler": "machine", "t": 1, "values": {"own_share": 0.8}}
    assert any("0.80" in (note.figure or "") for note in recorded(sample).notes)


def test_a_program_that_mostly_sleeps_is_not_disturbed_by_a_busy_machine() -> None:
    sample = {"event": "sample", "sampler": "machine", "t": 1, "values": {"own_share": 0.2}}
    launch = record_launch([START, sample, END | {"cpu_s": 0.01, "duration_s": 2.0}], JOB, benchmark())
    assert not launch.notes


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
    assert any(note.figure == "2 lines" for note in launch.notes)


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
    job = msgspec.structs.replace(JOB, barrier=Barrier(folder="/b", size=2, rank=1))
    launch = recorded(loop(), steps("measured", [1000]), job=job)
    assert {m.labels["job"] for m in launch.measurements} == {"1"}


def test_nodes_of_one_launch_are_labelled_and_a_node_by_itself_is_not() -> None:
    """Else what two nodes measured side by side would pass for two launches."""
    measured = loop(), steps("measured", [1000])
    one = msgspec.structs.replace(JOB, node="first")
    assert all("node" not in m.labels for m in recorded(*measured, job=one).measurements)
    two = msgspec.structs.replace(one, machines=2, barrier=Barrier(folder="/b", size=2, rank=1))
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
    launch = record_launch([START, END | {"max_rss_is_bound": True}], JOB, benchmark())
    peak, known = launch.measurement("memory.peak"), recorded().measurement("memory.peak")
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
    assert any("before it was precise enough (± 3.4%)" in note.text for note in launch.notes) is noted


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
    assert [(n.text, n.figure) for n in launch.notes] == [
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
    launch = recorded({**SPEEDS, "values": [1.0, math.inf]}, extraction(), metrics=(SPEED,))
    assert launch.status is Status.OK
    assert [(n.text, n.figure) for n in launch.notes] == [("some values of 'speed' are not finite", "1 of 2")]


def test_a_loop_that_does_not_exist_is_said_with_those_that_do() -> None:
    launch = recorded(loop(counts=False), steps("measured", [1000]), stop=StopRule(steps=5), loop="trian")
    assert [n.text for n in launch.notes] == ["a stop rule was given but no loop is called 'trian'; there is 'train'"]


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
