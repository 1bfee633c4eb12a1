"""From what a program said through voir to measurements and a verdict."""

from __future__ import annotations

import json
import math
from typing import Any

import builders
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Runner, Script
from benchwright.core.run import Launch
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import StopRule
from benchwright.kinds.registry import kind_of
from benchwright.record import record_launch

pytestmark = pytest.mark.compat

Event = dict[str, Any]
SECOND = 1_000_000_000
JOB = builders.job(id="b.D0", benchmark="b", data_file="/s.voir", dialect="voir")
START: Event = {"event": "start", "pid": 7, "t": 0, "wall": 1000.0}
END: Event = {"event": "end", "exit_code": 0, "duration_s": 60.0, "cpu_s": 1.5, "max_rss_bytes": 1000, "wall": 1060.0}


def benchmark(options: dict[str, Any] | None = None, **fields: Any) -> Benchmark:
    folder = BenchmarkFolder(
        path="/b", group="g", runner=Runner(name="voir", dialect="milabench", settings={"options": options or {}})
    )
    return Benchmark(
        name="b",
        workload=Script(path="/b/main.py", args=(), cwd="/b", python="python"),
        source="test",
        **({"folder": folder} | fields),
    )


def said(*objects: Any, t: int = SECOND) -> Event:
    lines = [text if isinstance(text, str) else json.dumps(text) for text in objects]
    return {"event": "reported", "dialect": "voir", "t": t, "lines": lines}


def rates(*values: float, task: str = "train", first_s: int = 1) -> list[Event]:
    """One observation a second."""
    return [
        said({"task": task, "rate": value, "units": "items/s"}, t=(first_s + n) * SECOND)
        for n, value in enumerate(values)
    ]


def recorded(*events: Event, end: Event = END, options: dict[str, Any] | None = None, **fields: Any) -> Launch:
    return record_launch([START, *events, end], JOB, benchmark(options, **fields), kind_of)


def samples(launch: Launch, metric: str) -> tuple[float, ...]:
    found = launch.measurement(metric)
    assert found is not None, f"no {metric} in {[m.metric for m in launch.measurements]}"
    return found.samples


def progress(done: int, of: int) -> Event:
    return said({"task": "early_stop", "progress": [done, of]}, t=100 * SECOND)


class TestObservations:
    def test_exactly_as_many_count_as_the_early_stop_waited_for(self) -> None:
        launch = recorded(*rates(1.0, 10.0, 11.0, 12.0), progress(4, 3))
        rate = launch.measurement("rate")
        assert rate is not None
        assert (rate.warmup_samples, rate.samples, rate.unit) == ((1.0,), (10.0, 11.0, 12.0), "items/s")
        assert launch.status is Status.OK
        assert launch.facts["reported"]["early_stop"] is True

    @given(count=st.integers(2, 40), wanted=st.integers(1, 40))
    def test_no_more_count_than_the_suite_asks_for_and_none_is_lost(self, count: int, wanted: int) -> None:
        values = [100.0 + (n * 7 % 5) for n in range(count)]
        launch = recorded(*rates(*values), options={"stop": wanted})
        rate = launch.measurement("rate")
        assert rate is not None
        assert len(rate.samples) == min(wanted, len(rate.samples))
        if count >= wanted:
            assert len(rate.samples) == wanted
        whole = [*rate.warmup_samples, *rate.samples]
        assert whole == values[: len(whole)]

    def test_the_first_is_warm_up(self) -> None:
        launch = recorded(*rates(5.0, 10.0, 10.0))
        rate = launch.measurement("rate")
        assert rate is not None
        assert (rate.warmup_samples, rate.samples) == ((5.0,), (10.0, 10.0))

    def test_the_only_one_counts(self) -> None:
        assert samples(recorded(*rates(5.0)), "rate") == (5.0,)

    def test_what_comes_before_it_is_steady_is_warm_up(self) -> None:
        slow = [10.0, 20.0, 35.0, 60.0]
        steady = [100.0, 101.0, 99.5, 100.4, 99.8, 100.2, 100.1, 99.9, 100.3, 100.0, 99.7, 100.2]
        launch = recorded(*rates(*slow, *steady))
        rate = launch.measurement("rate")
        assert rate is not None
        assert rate.samples == tuple(steady)
        assert (*rate.warmup_samples, *rate.samples) == (*slow, *steady)

    def test_rates_that_never_settle_are_said_to(self) -> None:
        launch = recorded(*rates(*(float(n * n + 1) for n in range(20))))
        assert [n.text for n in launch.notes if "had not stabilised" in n.text]

    def test_fewer_than_asked_for_are_said(self) -> None:
        launch = recorded(*rates(5.0, 10.0, 10.0), options={"stop": 60})
        assert [n.text for n in launch.notes] == ["it ended after 2 of the 60 observations to be measured"]

    def test_what_comes_after_it_asked_to_be_ended_does_not_count(self) -> None:
        stop = said({"$event": "stop"}, t=4 * SECOND)
        end = END | {"exit_code": None, "signal": 15, "early_stop": True}
        launch = recorded(*rates(1.0, 10.0, 11.0), stop, *rates(99.0, first_s=5), end=end, options={"stop": 2})
        assert samples(launch, "rate") == (10.0, 11.0)
        assert launch.status is Status.OK

    def test_between_marks_is_measured_and_nothing_else(self) -> None:
        begin = said({"$event": "measure_begin", "$data": {"t": 3 * SECOND}}, t=4 * SECOND)
        done = said({"$event": "measure_end", "$data": {"t": 6 * SECOND}}, t=7 * SECOND)
        events = [*rates(1.0, 2.0), begin, *rates(10.0, 11.0, first_s=4), done, *rates(99.0, first_s=8)]
        launch = recorded(*events, options={"stop": 2})
        rate = launch.measurement("rate")
        assert rate is not None
        assert (rate.warmup_samples, rate.samples) == ((1.0, 2.0), (10.0, 11.0))
        assert launch.facts["measured_ns"] == (3 * SECOND, 6 * SECOND)

    def test_the_measured_time_is_from_the_warm_up_to_the_last_that_counts(self) -> None:
        assert recorded(*rates(5.0, 10.0, 10.0)).facts["measured_ns"] == (SECOND, 3 * SECOND)

    def test_a_programs_own_time_is_better_than_when_it_was_seen(self) -> None:
        events = [said({"task": "train", "rate": 5.0, "time": 1000.0 + n}, t=50 * SECOND) for n in (10, 11, 12)]
        assert recorded(*events).facts["measured_ns"] == (10 * SECOND, 12 * SECOND)

    def test_a_time_outside_its_life_is_not_believed(self) -> None:
        events = [said({"task": "train", "rate": 5.0, "time": n}, t=(50 + n) * SECOND) for n in (10, 11, 12)]
        assert recorded(*events).facts["measured_ns"] == (60 * SECOND, 62 * SECOND)


class TestRanks:
    """Lines of the ranks of one program come out mixed, each with whose it is."""

    def lines(self, *told: dict[str, Any]) -> list[Event]:
        return [said(line, t=(n + 1) * SECOND) for n, line in enumerate(told)]

    def test_each_rank_has_its_own_rates_and_the_launch_their_sum(self) -> None:
        mixed = [{"task": "train", "rate": 10.0 + n * 10**rank, "$rank": rank} for n in range(4) for rank in (0, 1)]
        launch = recorded(*self.lines(*mixed), options={"stop": 3})
        found = {m.labels.get("rank"): m.samples for m in launch.measurements if m.metric == "rate"}
        assert found == {"0": (11.0, 12.0, 13.0), "1": (20.0, 30.0, 40.0), None: (42.0,)}

    def test_one_that_speaks_for_all_is_the_launch(self) -> None:
        launch = recorded(*self.lines(*[{"task": "train", "rate": 10.0, "$rank": 0} for _ in range(4)]))
        assert [m.labels for m in launch.measurements if m.metric == "rate"] == [{"loop": "train"}]

    def test_a_loss_of_any_rank_can_diverge(self) -> None:
        fine = [{"task": "train", "rate": 10.0, "loss": 0.5, "$rank": rank} for _ in range(3) for rank in (0, 1)]
        launch = recorded(*self.lines(*fine, {"task": "train", "loss": math.nan, "$rank": 1}))
        assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)


def test_a_mark_says_how_many_observations_there_were_whichever_line_came_first() -> None:
    def mark(name: str, count: int) -> dict[str, Any]:
        return {"$event": name, "$data": {"t": count * SECOND, "rates": {"train": count}}}

    lines = [{"task": "train", "rate": float(n)} for n in (1, 2, 3, 4, 5)]
    before = [lines[0], mark("measure_begin", 2), lines[1], lines[2], mark("measure_end", 4), lines[3], lines[4]]
    after = [lines[0], lines[1], mark("measure_begin", 2), lines[2], lines[3], mark("measure_end", 4), lines[4]]
    for order in (before, after):
        launch = recorded(*[said(line, t=(n + 1) * SECOND) for n, line in enumerate(order)], options={"stop": 2})
        assert samples(launch, "rate") == (3.0, 4.0)


class TestTasks:
    def test_train_counts_and_the_others_carry_their_name(self) -> None:
        launch = recorded(*rates(1.0, 1.0, task="eval"), *rates(2.0, 2.0), said({"task": "eval", "loss": 3.0}))
        assert samples(launch, "rate") == (2.0,)
        assert samples(launch, "eval.rate") == (1.0,)
        assert samples(launch, "eval.loss") == (3.0,)

    def test_the_one_the_suite_names_counts(self) -> None:
        launch = recorded(*rates(1.0, 1.0, task="eval"), *rates(2.0, 2.0), loop="eval")
        assert samples(launch, "rate") == (1.0,)

    def test_the_only_one_counts_whatever_its_name(self) -> None:
        assert samples(recorded(*rates(7.0, 7.0, task="infer")), "rate") == (7.0,)


class TestData:
    def test_losses_and_other_values_are_kept_all(self) -> None:
        launch = recorded(
            *rates(1.0, 2.0),
            said(
                {"task": "train", "loss": 3.0},
                {"loss": 2.0},
                {"loss": 1.0, "task": "train"},
                {"value": 5, "flag": True},
            ),
        )
        loss = launch.measurement("loss")
        assert loss is not None
        assert (loss.samples, loss.aggregate) == ((3.0, 2.0, 1.0), "last")
        assert samples(launch, "value") == (5.0,)
        assert launch.measurement("flag") is None

    def test_a_peak_of_memory_is_in_bytes(self) -> None:
        launch = recorded(*rates(1.0, 2.0), said({"memory_peak": 3, "units": "MiB"}, {"memory_peak": 5, "units": "B"}))
        assert samples(launch, "gpu.memory_peak") == (3.0 * 2**20, 5.0)

    def test_accelerators_are_taken_from_voir_where_nobody_else_looked(self) -> None:
        look = {
            "task": "main",
            "gpudata": {"0": {"memory": [100, 1000], "load": 0.5, "temperature": -1, "power": "N/A"}},
        }
        launch = recorded(*rates(1.0, 2.0), said(look, look, t=0), said(look, t=2 * SECOND))
        assert samples(launch, "gpu.memory") == (100.0 * 2**20,) * 2  # said twice at once, counted once
        assert samples(launch, "gpu.load") == (50.0,)  # the other was before it was measured
        assert launch.measurement("gpu.temperature") is None
        assert launch.measurement("gpu.power") is None
        assert launch.facts["reported"]["gpu_memory_bytes"] == {"0": 1000.0 * 2**20}

    def test_accelerators_that_were_sampled_are_not_counted_twice(self) -> None:
        ours = {"event": "sample", "sampler": "nvidia", "device": 0, "t": SECOND, "values": {"memory_bytes": 7.0}}
        look = {"gpudata": {"0": {"memory": [100, 1000], "load": 0.5}}}
        assert samples(recorded(ours, *rates(1.0, 2.0), said(look)), "gpu.memory") == (7.0,)

    def test_lines_that_cannot_be_read_are_counted_and_the_others_are_used(self) -> None:
        launch = recorded(*rates(1.0, 2.0), said('{"rate": ', "[]", "null", "\x00", '{"task": "train", "loss": 1}'))
        assert samples(launch, "loss") == (1.0,)
        assert [n.evidence for n in launch.notes] == ["4 of 7"]

    def test_phases_are_known(self) -> None:
        launch = recorded(said({"$event": "phase", "$data": {"name": "run_script"}}), *rates(1.0, 2.0))
        assert launch.facts["reported"]["phases_ns"] == {"run_script": SECOND}


class TestVerdicts:
    def test_no_rate_is_no_success(self) -> None:
        launch = recorded(said({"task": "train", "loss": 1.0}))
        assert (launch.status, launch.reason) == (Status.FAILED, Reason.NO_DATA)
        assert "no rate came from voir" in (launch.detail or "")

    def test_nothing_at_all_is_no_success(self) -> None:
        launch = recorded()
        assert (launch.reason, "nothing came" in (launch.detail or "")) == (Reason.NO_DATA, True)

    def test_rates_that_are_no_numbers_are_no_success(self) -> None:
        launch = recorded(*rates(math.nan, math.inf, -1.0))
        assert (launch.status, launch.reason) == (Status.FAILED, Reason.NO_DATA)

    def test_a_script_that_does_not_speak_voir_needs_no_rate(self) -> None:
        job = builders.job(id="b.D0", benchmark="b")
        assert record_launch([START, END], job, benchmark(), kind_of).status is Status.OK
        prepare = builders.job(id="b", data_file="/d", phase="prepare")
        assert record_launch([START, END], prepare, benchmark(), kind_of).status is Status.OK

    @pytest.mark.parametrize("bare", ["NaN", "Infinity"])
    def test_a_loss_that_diverged_is_a_failure_even_after_the_early_stop(self, bare: str) -> None:
        launch = recorded(*rates(1.0, 2.0), progress(2, 1), said(f'{{"task": "train", "loss": {bare}}}'))
        assert (launch.status, launch.reason) == (Status.FAILED, Reason.INVALID)
        assert "loss became" in (launch.detail or "")

    def test_a_crash_is_told_with_the_error_that_voir_saw(self) -> None:
        error = said({"$event": "error", "$data": {"type": "ValueError", "message": "bad\nshape"}})
        launch = recorded(*rates(1.0, 2.0), error, end=END | {"exit_code": 1})
        assert (launch.reason, launch.detail) == (Reason.CRASHED, "exit code 1: ValueError: bad shape")
        assert [n.severity for n in launch.notes] == ["error"]

    def test_running_out_of_memory_is_told_from_the_error(self) -> None:
        error = said({"$event": "error", "$data": {"type": "OutOfMemoryError", "message": "CUDA out of memory."}})
        assert recorded(error, end=END | {"exit_code": 1}).reason is Reason.OUT_OF_MEMORY

    def test_an_error_is_a_failure_even_if_the_program_ends_well(self) -> None:
        error = said({"$event": "error", "$data": {"type": "ValueError", "message": "no"}})
        assert recorded(*rates(1.0, 2.0), error).status is Status.FAILED

    def test_an_error_of_being_ended_is_a_note_and_a_crash_of_its_own_is_not_excused(self) -> None:
        stop, error = (
            said({"$event": "stop"}),
            said({"$event": "error", "$data": {"type": "Ended", "message": "by us"}}),
        )
        ended = END | {"exit_code": 1, "early_stop": True}
        launch = recorded(*rates(1.0, 2.0), stop, error, end=ended)
        assert (launch.status, [n.text for n in launch.notes if "Ended" in n.text] != []) == (Status.OK, True)
        launch = recorded(*rates(1.0, 2.0), stop, error, end=END | {"exit_code": 1})
        assert (launch.reason, launch.detail) == (Reason.CRASHED, "exit code 1: Ended: by us")

    def test_leaving_by_sys_exit_is_no_error(self) -> None:
        leave = said({"$event": "error", "$data": {"type": "SystemExit", "message": "0"}})
        assert recorded(*rates(1.0, 2.0), leave).status is Status.OK

    def test_a_broken_instrument_is_a_note(self) -> None:
        broken = said({"$event": "overseer_error", "$data": {"type": "KeyError", "message": "'x'"}})
        launch = recorded(*rates(1.0, 2.0), broken)
        assert launch.status is Status.OK
        assert [n.text for n in launch.notes] == ["voir: an instrument failed: KeyError: 'x'"]

    def test_a_deadline_is_one_even_after_it_asked_to_be_ended(self) -> None:
        end = END | {"exit_code": None, "signal": 15, "timed_out": True, "early_stop": True}
        assert recorded(*rates(1.0, 2.0), end=end).reason is Reason.TIMED_OUT

    def test_a_stop_rule_of_the_suite_is_not_missed_by_a_loop(self) -> None:
        launch = recorded(*rates(1.0, 2.0, 3.0), stop=StopRule(observations=2))
        assert launch.notes == ()
        assert len(samples(launch, "rate")) == 2


words = ["task", "rate", "loss", "time", "progress", "gpudata", "$event", "$data", "stop", "error", "train", "phase"]
leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(words) | st.just(10**400)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(words), inner), max_leaves=10
)


@example(objects=[{"task": None, "rate": None, "time": 1.797693134862316e299}], raw="")
@given(objects=st.lists(st.dictionaries(st.sampled_from(words), values) | values, max_size=6), raw=st.text(max_size=10))
def test_whatever_is_said_gives_a_launch(objects: list[Any], raw: str) -> None:
    launch = recorded(said(*objects, raw), *rates(1.0, 2.0), options={"stop": 2})
    assert launch.measurement("rate") is not None or launch.status is Status.FAILED
    assert not [n.text for n in launch.notes if "lines of the stream could not" in n.text]
