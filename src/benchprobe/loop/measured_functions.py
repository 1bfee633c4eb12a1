"""`iterate`, `give` and `phase` of a process that is measured."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter_ns
from typing import Any, Callable, Iterator, Tuple

from benchprobe import noop
from benchprobe.loop.loop_pass import BatchSize
from benchprobe.loop.probe import Probe
from benchprobe.loop.timed_loop import SizedTimedLoop, TimedLoop
from benchprobe.stream.values import accept

_ABSENT: Any = object()


def functions(probe: Probe) -> Tuple[Callable[..., Any], Callable[..., None], Callable[[str], Any]]:
    """`iterate`, `give` and `phase` that record through `probe`."""
    current = probe.current.get
    complain = probe.complain_about_value

    def iterate(
        name: str,
        iterable: Any,
        report_batch: bool = True,
        ignore_loading: bool = False,
        batch_size: BatchSize = None,
        unit: Any = None,
    ) -> Any:
        kind = SizedTimedLoop if hasattr(type(iterable), "__len__") else TimedLoop
        return kind(probe, name, iterable, batch_size, unit)

    def give(*, loss: Any = _ABSENT, **values: Any) -> None:
        if type(loss) is float and not values:  # the common case, and worth a quarter of a microsecond
            current().append(loss)
            return
        if loss is not _ABSENT:
            values["loss"] = loss
        accepted, deferred = accept(values, complain)
        place = current()
        if deferred:
            place.defer(accepted)
        if accepted:
            place.append(accepted)

    @contextmanager
    def phase(name: str) -> Iterator[None]:
        about = {"event": "phase", "name": name}
        probe.writer.emit({**about, "t": perf_counter_ns(), "edge": "begin"})
        try:
            yield
        finally:
            probe.writer.emit({**about, "t": perf_counter_ns(), "edge": "end"})

    iterate.__doc__, give.__doc__, phase.__doc__ = noop.iterate.__doc__, noop.give.__doc__, noop.phase.__doc__
    return iterate, give, phase
