"""The loops, with callers that only count."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmodels.measure import measured_loops
from benchmodels.measure.measured_loops import CALLS_WITHOUT_RULE, Caller, latency_loop, streams_times


def test_without_a_rule_the_loop_makes_a_fixed_number_of_calls() -> None:
    seen: list[Any] = []
    latency_loop(seen.append, "inputs", endless=False)
    assert seen == ["inputs"] * CALLS_WITHOUT_RULE


def test_inputs_that_are_used_up_are_made_anew_for_each_call() -> None:
    made, seen = iter(range(10_000)), []  # type: ignore[var-annotated]
    latency_loop(seen.append, None, fresh=lambda: next(made), endless=False)
    assert seen == list(range(CALLS_WITHOUT_RULE))


def test_inputs_that_are_used_up_are_released_before_the_next_are_made() -> None:
    """Not in the next call's time: to give back what a cache holds may take longer than the call."""
    log: list[str] = []

    class Inputs:
        def __init__(self) -> None:
            log.append("made")

        def __del__(self) -> None:
            log.append("released")

    latency_loop(lambda inputs: log.append("called"), None, fresh=Inputs, endless=False)
    assert log == ["made", "called", "released"] * CALLS_WITHOUT_RULE


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_loops, "ROUND_NS", 1_000_000)


@pytest.mark.usefixtures("short_rounds")
def test_each_stream_is_made_called_and_closed_in_its_own_thread() -> None:
    threads: dict[str, set[int]] = {"made": set(), "called": set(), "closed": set()}
    counts: dict[int, int] = {}

    def run(inputs: Any) -> None:
        counts[threading.get_ident()] = counts.get(threading.get_ident(), 0) + 1
        threads["called"].add(threading.get_ident())

    def make() -> Caller:
        threads["made"].add(threading.get_ident())
        return Caller(run, lambda: None, lambda: threads["closed"].add(threading.get_ident()))

    rates, seconds = streams_times([make] * 3)
    assert len(rates) == measured_loops.MAX_ROUNDS
    assert all(rate > 0 for rate in rates)
    assert 0 < len(seconds) <= min(measured_loops.MOST_CALLS, sum(counts.values()))
    assert threads["made"] == threads["called"] == threads["closed"]
    assert len(threads["made"]) == 3
    assert len(set(counts.values())) == 1, "in each round everybody makes the same number of calls"


def test_inputs_of_streams_are_made_before_anybody_calls_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_loops, "ROUND_NS", 10**12)  # so that `most_calls` are made, however slow a call is
    ready: list[int] = []
    most = 0

    def inputs() -> int:
        nonlocal most
        time.sleep(0.02)
        ready.append(1)
        most = max(most, len(ready))
        return 1

    rates, _ = streams_times([lambda: Caller(lambda x: ready.pop(), inputs, lambda: None)] * 2, most_calls=3)
    assert most == 2 * 3
    assert max(rates) > 2 / 0.02, "what the inputs take is no part of it"


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("where", ["make", "run"])
def test_what_one_stream_raises_ends_all(where: str) -> None:
    closed: list[str] = []

    def fail(*_: Any) -> Any:
        raise RuntimeError(f"no {where}")

    def good() -> Caller:
        return Caller(lambda inputs: None, lambda: None, lambda: closed.append("good"))

    bad = fail if where == "make" else lambda: Caller(fail, lambda: None, lambda: closed.append("bad"))
    before = threading.active_count()
    with pytest.raises(RuntimeError, match=f"no {where}"):
        streams_times([good, bad])
    assert threading.active_count() == before
    assert "good" in closed


@pytest.mark.usefixtures("short_rounds")
def test_slow_calls_get_the_fewest_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_loops, "MAX_SECONDS", 0.0)
    assert (
        len(streams_times([lambda: Caller(lambda x: None, lambda: None, lambda: None)]).rates)
        == measured_loops.MIN_ROUNDS
    )


def test_the_time_of_each_concurrent_call_is_kept_and_of_many_an_even_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured_loops, "ROUND_NS", 4_000_000)
    monkeypatch.setattr(measured_loops, "MOST_CALLS", 10)
    _, seconds = streams_times([lambda: Caller(lambda x: time.sleep(0.002), lambda: None, lambda: None)] * 2)
    assert 5 <= len(seconds) <= 10
    assert min(seconds) >= 0.002


def test_only_what_all_callers_do_at_once_counts() -> None:
    quick, slow = list(range(0, 1100, 100)), [50, *range(300, 1900, 150)]  # ten calls of 100 ns, eleven of 150
    rates, seconds = measured_loops.times_together([quick, slow])
    assert rates == pytest.approx([1e9 / 100 + 1e9 / 150])  # from 300 to 1000: seven calls, and four and two thirds
    assert seconds == pytest.approx([100e-9] * 7 + [150e-9] * 5)  # the last lies in it by two thirds


def test_of_a_round_in_which_callers_hardly_meet_everything_counts() -> None:
    rates, seconds = measured_loops.times_together([[0, 10, 20], [100, 115, 130]])
    assert rates == pytest.approx([4 / 130e-9])
    assert len(seconds) == 4


def test_a_round_of_one_call_counts_it() -> None:
    assert measured_loops.times_together([[0, 1000], [200, 1200]]) == (pytest.approx([2 / 1200e-9]), [1e-6, 1e-6])


@given(
    starts=st.lists(st.integers(0, 50), min_size=1, max_size=4),
    calls=st.integers(1, 40),
    call_ns=st.integers(10, 1000),
)
def test_equal_calls_have_the_rate_of_as_many_callers(starts: list[int], calls: int, call_ns: int) -> None:
    callers = [[start + call_ns * number for number in range(calls + 1)] for start in starts]
    rates, seconds = measured_loops.times_together(callers)
    assert set(seconds) <= {call_ns / 1e9}
    assert rates[0] <= len(starts) / (call_ns / 1e9) * (1 + 1e-9)
    if calls > 2 and max(starts) - min(starts) < call_ns * (calls - 2) / 4:
        assert rates[0] == pytest.approx(len(starts) / (call_ns / 1e9))
