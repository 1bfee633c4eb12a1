"""The measured loops: calls in sequence (latency), and concurrent callers (throughput of streams)."""

from __future__ import annotations

import gc
import math
import threading
from bisect import bisect_left, bisect_right
from contextlib import nullcontext
from itertools import repeat
from time import perf_counter_ns
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import benchprobe
from benchmodels.runtimes.base import TimesItself
from benchmodels.types import Prepared

LOOP = "latency"
CALLS_WITHOUT_RULE = 100  # if there is no stop rule
ROUND_NS = 50_000_000
WARMUP_ROUNDS = 2
MIN_ROUNDS, MAX_ROUNDS = 5, 20
MIN_OWN_CALLS, MAX_OWN_CALLS = 5, 1000
MOST_CALLS = 10_000  # of concurrent callers, whose times are kept
MAX_SECONDS = 20.0  # for all rounds; MIN_ROUNDS are always made


class Caller(NamedTuple):
    """One stream: its call, the source of its inputs, and how to close it."""

    run: Callable[[Any], Any]
    inputs: Callable[[], Any]
    close: Callable[[], None]
    look: Callable[[Any], None] = lambda result: None  # checks the result of its last call


def latency_loop(
    run: Callable[[Any], Any],
    prepared: Prepared,
    fresh: Optional[Callable[[], Any]] = None,
    endless: bool = True,
) -> None:
    """Calls `run` under the probe's loop until its stop rule is satisfied; not `endless`: a fixed number of calls.

    `fresh`: prepares the inputs of each call, if calls consume them. The loop counts that as waiting, so a call takes its
    step less its wait.
    """
    probe = benchprobe.active_probe()
    gc.collect()
    gc.freeze()  # no garbage collection of the script's objects while calls are timed
    count = None if endless else CALLS_WITHOUT_RULE
    try:
        with probe.host_clock() if probe is not None else nullcontext():  # a call is finished when it returns
            if fresh is None:
                given = repeat(prepared) if count is None else repeat(prepared, count)
                for inputs in benchprobe.iterate(LOOP, given, batch_size=1):
                    run(inputs)
            else:
                for held in benchprobe.iterate(LOOP, _fresh_inputs(fresh, count), batch_size=1):
                    run(held[0])
    finally:
        gc.unfreeze()


def _fresh_inputs(fresh: Callable[[], Any], count: Optional[int]) -> Iterator[List[Any]]:
    """A list with the inputs of the next call. The previous ones are released here: that may take longer than a call."""
    held: List[Any] = []
    for _ in repeat(None) if count is None else range(count):
        held.clear()
        held.append(fresh())
        yield held


def times_in_runtime(session: TimesItself, prepared: Prepared) -> Tuple[List[float], List[float]]:
    """For some calls, the seconds by the runtime's own clock, and the seconds our clock adds.

    As many calls as fit into 50 ms, but at least MIN_OWN_CALLS.
    """
    inside: List[float] = []
    around: List[float] = []
    first_ns = perf_counter_ns()
    while len(inside) < MAX_OWN_CALLS and (len(inside) < MIN_OWN_CALLS or perf_counter_ns() - first_ns < ROUND_NS):
        began_ns = perf_counter_ns()
        session.run(prepared)
        whole_s = (perf_counter_ns() - began_ns) / 1e9
        inside.append(session.last_call_s())
        around.append(whole_s - inside[-1])
    return inside, around


class StreamsTimes(NamedTuple):
    """`rates`: calls per second of all callers together, one figure per round. `seconds`: of calls, evenly chosen if there are many."""

    rates: List[float]
    seconds: List[float]


def streams_times(makers: Sequence[Callable[[], Caller]], most_calls: Optional[int] = None) -> StreamsTimes:
    """Of concurrent callers, each made in its own thread.

    In a round each caller makes the same number of calls: enough for 50 ms, at most `most_calls`. All inputs are prepared
    before it.
    """
    with _Crowd(makers) as crowd:
        once_ns = min(crowd.round(1) for _ in range(WARMUP_ROUNDS))
        most = most_calls or math.inf
        calls = int(min(most, max(1, math.ceil(ROUND_NS / max(once_ns, 1)))))
        longer = math.ceil(calls * ROUND_NS / max(crowd.round(calls), 1))  # many calls in a row are faster
        calls = int(min(most, max(1, longer)))
        crowd.forget()
        began_ns = perf_counter_ns()
        for number in range(1, MAX_ROUNDS + 1):
            crowd.round(calls)
            if number >= MIN_ROUNDS and perf_counter_ns() - began_ns > MAX_SECONDS * 1e9:
                break
        rounds = [times_together(stamps) for stamps in zip(*crowd.stamps)]
        crowd.look()
    seconds = [each for times in rounds for each in times.seconds]
    return StreamsTimes([times.rates[0] for times in rounds], seconds[:: math.ceil(len(seconds) / MOST_CALLS)])


def times_together(callers: Sequence[List[int]]) -> StreamsTimes:
    """Of one round, from the stamps of each caller: the start of its first call and each call's end.

    Only what all callers do at once counts: from when each has made one call, for which it has just woken up, to when the
    first has made its last, with the calls at least half of which lie in it. If it is less than a quarter of the round, the
    whole counts.
    """
    begin, end = max(stamps[1] for stamps in callers), min(stamps[-1] for stamps in callers)
    whole_ns = max(stamps[-1] for stamps in callers) - min(stamps[0] for stamps in callers)
    if 4 * (end - begin) < whole_ns:
        begin = min(stamps[0] for stamps in callers)
        end = begin + whole_ns
    calls, seconds = 0.0, []
    for stamps in callers:
        first, last = bisect_left(stamps, begin), bisect_right(stamps, end) - 1
        before = after = 0.0  # the shares of the calls that lie in it only in part
        if first > 0:
            before = (stamps[first] - begin) / max(stamps[first] - stamps[first - 1], 1)
        if last + 1 < len(stamps):
            after = (end - stamps[last]) / max(stamps[last + 1] - stamps[last], 1)
        calls += before + last - first + after
        counted = stamps[first - (before >= 0.5) : last + 1 + (after >= 0.5)]
        seconds += [(b - a) / 1e9 for a, b in zip(counted, counted[1:])]
    seconds = seconds or [(b - a) / 1e9 for stamps in callers for a, b in zip(stamps, stamps[1:])]
    return StreamsTimes([calls / (max(end - begin, 1) / 1e9)], seconds)


class _Crowd:
    """A thread per caller; they wait between rounds. `round` raises what a caller raised."""

    def __init__(self, makers: Sequence[Callable[[], Caller]]) -> None:
        self._barrier = threading.Barrier(len(makers) + 1)
        self._calls = 0
        self._looking = False
        self.stamps: List[List[List[int]]] = [[] for _ in makers]  # by caller and round: the start, and each call's end
        self._errors: List[BaseException] = []
        self._threads = [
            threading.Thread(target=self._live, args=(make, rounds), daemon=True)
            for make, rounds in zip(makers, self.stamps)
        ]

    def __enter__(self) -> _Crowd:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._barrier.abort()
        for thread in self._threads:
            thread.join(10.0)

    def round(self, calls: int) -> int:
        """Has every caller make `calls` calls; returns the nanoseconds that took."""
        self._calls = calls
        try:
            for _ in ("calls announced", "inputs prepared", "calls made"):
                self._barrier.wait()
        except threading.BrokenBarrierError:
            pass
        if self._errors:
            raise self._errors[0]
        newest = [rounds[-1] for rounds in self.stamps]
        return max(stamps[-1] for stamps in newest) - min(stamps[0] for stamps in newest)

    def forget(self) -> None:
        """The calls so far were to warm up."""
        for rounds in self.stamps:
            rounds.clear()

    def look(self) -> None:
        """One more concurrent call by each, whose result is checked."""
        self._looking = True
        self.round(1)

    def _live(self, make: Callable[[], Caller], rounds: List[List[int]]) -> None:
        try:
            caller = make()
            try:
                self._work(caller, rounds)
            finally:
                caller.close()
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            self._errors.append(error)
            self._barrier.abort()

    def _work(self, caller: Caller, rounds: List[List[int]]) -> None:
        run, inputs = caller.run, caller.inputs
        while True:
            self._barrier.wait()
            prepared = [inputs() for _ in range(self._calls)]
            self._barrier.wait()
            stamps = [perf_counter_ns()]
            for each in prepared:
                run(each)
                stamps.append(perf_counter_ns())
            rounds.append(stamps)
            if self._looking:
                caller.look(run(inputs()))
            del prepared
            self._barrier.wait()
