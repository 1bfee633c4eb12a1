"""The loops, with callers that only count."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

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
    monkeypatch.setattr(measured_loops, "MOST_CALLS", 50)
    _, seconds = streams_times([lambda: Caller(lambda x: time.sleep(0.002), lambda: None, lambda: None)] * 2)
    assert 12 < len(seconds) <= 50
    assert min(seconds) >= 0.002


def test_the_first_call_of_a_round_for_which_a_caller_wakes_up_does_not_count() -> None:
    crowd = measured_loops._Crowd([])
    crowd._ends = [[(0, [9_000, 10_000, 11_000]), (20_000, [25_000])]]
    assert crowd.seconds() == [1e-6, 1e-6, 5e-6], "the only call of a round does"
