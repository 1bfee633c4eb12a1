"""The iterable that `iterate` returns in a measured process, with a time stamp before and after each step."""

from __future__ import annotations

import sys
from itertools import chain, compress, islice
from time import perf_counter_ns
from typing import Any, AsyncIterator, Callable, Generic, Iterable, Iterator, Optional, TypeVar

from benchprobe.loop.loop_pass import BatchSize, LoopPass
from benchprobe.loop.probe import Probe

T = TypeVar("T")
_COUNTED = (type(iter(range(0))), type(iter(())))  # iterators that tell how many are left, whatever the program does


class TimedLoop(Generic[T]):
    """Can be iterated several times if its iterable can."""

    def __init__(self, probe: Probe, name: str, iterable: Any, batch_size: BatchSize, unit: Any = None) -> None:
        self._probe, self._name, self._iterable = probe, name, iterable
        self._batch_size, self._unit = batch_size, unit
        self._started: Optional[Iterator[T]] = None

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._parts())

    def _parts(self) -> Iterator[Iterable[T]]:
        """The steps, a chunk at a time; steps too short to stamp one by one come in groups, which costs next to
        nothing: no bytecode runs between two of its steps."""
        if self._probe.measured_enough(self._name):
            return
        passage = self._passage()
        passage.open(may_group=True)
        try:
            batches = iter(self._iterable)
            counted = type(batches) in _COUNTED
            source = chain(batches, _notice_the_end(passage))
            while not passage.over:
                if not passage.group:
                    yield _stamped(passage, source)
                    continue
                more = True
                while more:
                    asked = perf_counter_ns()
                    first = list(islice(source, 1))
                    if not first:
                        break
                    left, ticks = passage.begin_group(perf_counter_ns() - asked, batches if counted else None)
                    yield first
                    first.clear()  # not kept alive while the next one is made
                    others = islice(batches, left)
                    yield others if counted else compress(others, ticks)
                    more = passage.end_group()
                passage.turn_over(perf_counter_ns(), None)
        except GeneratorExit:
            if passage.group:
                passage.interrupted(perf_counter_ns(), sys._getframe().f_back)
            raise
        finally:
            passage.close()

    def __next__(self) -> T:
        if self._started is None:
            self._started = iter(self)
        return next(self._started)

    def __aiter__(self) -> AsyncIterator[T]:
        return AsyncSteps(None if self._probe.measured_enough(self._name) else self._passage(), self._iterable)

    def _passage(self) -> LoopPass:
        return LoopPass(self._probe, self._name, self._batch_size, self._iterable, self._unit)


class SizedTimedLoop(TimedLoop[T]):
    """With a length."""

    def __len__(self) -> int:
        return len(self._iterable)


class AsyncSteps(Generic[T]):
    """The same for `async for`. Not an async generator: those are closed some time after a `break`, not at once."""

    def __init__(self, passage: Optional[LoopPass], iterable: Any) -> None:
        self._passage = passage
        self._iterable = iterable
        self._source: Any = None
        self._append: Callable[[int], None]
        self._steps = 0

    def __aiter__(self) -> AsyncSteps[T]:
        return self

    async def __anext__(self) -> T:
        if not self._ask():
            raise StopAsyncIteration
        passage = self._passage
        assert passage is not None
        try:
            batch: T = await self._source.__anext__()
        except BaseException as error:
            passage.exhausted = isinstance(error, StopAsyncIteration)
            self._close()
            raise
        self._append(perf_counter_ns())
        if passage.size_of is not None:
            passage.append_size(passage.size_of(batch))
        return batch

    def __del__(self) -> None:
        if self._passage is not None and self._source is not None:
            self._passage.interrupted(perf_counter_ns(), sys._getframe().f_back)
            self._close()

    def _ask(self) -> bool:
        """Stamps the end of the last step and prepares the next one. False: no more."""
        passage = self._passage
        if passage is None:
            return False
        if self._source is None:
            passage.open()
            self._append = passage.append
            self._source = self._iterable.__aiter__()
            return True
        self._steps += 1
        if passage.stride and self._steps % passage.stride == 0:
            passage.mark_device()
        now = perf_counter_ns()
        self._append(now)
        if self._steps == passage.budget or now >= passage.due:
            if not passage.turn_over(now, self._steps):
                self._close()
                return False
            self._append = passage.append
            self._steps = 0
        return True

    def _close(self) -> None:
        passage, self._passage = self._passage, None
        if passage is not None:
            passage.close()


def _stamped(passage: LoopPass, source: Iterator[T]) -> Iterator[T]:
    """The steps of a chunk, each between two stamps, which are inline on purpose: their cost is paid at every step."""
    clock, append, due = perf_counter_ns, passage.append, passage.due
    count: Optional[int] = passage.budget  # unless it ends before that
    now = 0
    batch: Any
    try:
        if passage.is_plain:
            for batch in islice(source, passage.budget):
                append(clock())
                yield batch
                now = clock()
                append(now)
                batch = None  # not kept alive while the next one is made
                if now >= due:
                    count = None
                    break
        else:
            size_of, append_size = passage.size_of, passage.append_size
            left = stride = passage.stride
            for batch in islice(source, passage.budget):
                append(clock())
                if size_of is not None:
                    append_size(size_of(batch))
                yield batch
                left -= 1
                if left == 0:
                    passage.mark_device()
                    left = stride
                now = clock()
                append(now)
                batch = None
                if now >= due:
                    count = None
                    break
    except GeneratorExit:
        passage.interrupted(perf_counter_ns(), sys._getframe().f_back)
        raise
    passage.turn_over(now, None if passage.exhausted else count)


def _notice_the_end(passage: LoopPass) -> Iterator[Any]:
    """Chained behind an iterable, this yields nothing and runs when that is exhausted."""
    passage.exhausted = True
    yield from ()
