"""The probe of this process: the writer, which loop is running where, and which one counts."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from time import perf_counter_ns
from typing import Any, Callable, Dict, Iterator, List, Optional, Protocol, Set, Tuple, Union

from benchprobe.config import Config
from benchprobe.loop.device import TorchTimer, find_timer, never_free, no_device
from benchprobe.loop.measurement import STOPPED, LoopMeasurement
from benchprobe.rendezvous.barrier import meeting_at
from benchprobe.rendezvous.ranks import RankLease, find_lease
from benchprobe.stream.events import message_event, probe_event
from benchprobe.stream.values import settle
from benchprobe.stream.writer import Live, Writer
from benchprobe.version import __version__

Given = Union[float, Dict[str, Any]]  # a lone float is `loss`
TRAIN = "train"  # the loop that counts where none is named
DEFERRED_NS = 500_000_000  # values of a device given outside loops are read this much later


class RunningLoop(Live, Protocol):
    """A pass through a loop, as the probe sees it."""

    name: str
    thread: int
    measurement: Optional[LoopMeasurement]

    def announce(self) -> None:
        """Writes the event about the loop."""

    def detach(self) -> None:
        """Ends its record: it belongs to the parent of this process."""

    def close(self) -> None:
        """The loop has ended."""


class Outside:
    """Takes values given outside all loops."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._deferred: List[Tuple[int, Dict[str, Any]]] = []

    def append(self, given: Given) -> None:
        values = {"loss": given} if isinstance(given, float) else given
        if not self._deferred or values is not self._deferred[-1][1]:
            self._emit(perf_counter_ns(), values)
        if self._deferred and perf_counter_ns() - self._deferred[0][0] > DEFERRED_NS:
            self.settle()

    def defer(self, values: Dict[str, Any]) -> None:
        self._deferred.append((perf_counter_ns(), values))

    def settle(self) -> None:
        """Reads what was left on a device."""
        deferred, self._deferred = self._deferred, []
        settle([values for _, values in deferred], self._probe.complain_about_value)
        for given_ns, values in deferred:
            self._emit(given_ns, values)

    def forget(self) -> None:
        self._deferred = []

    def _emit(self, given_ns: int, values: Dict[str, Any]) -> None:
        if values:
            self._probe.writer.emit({"event": "give", "t": given_ns, "values": values})


class Probe:
    """Created once, when benchprobe is imported in a measured process."""

    def __init__(self, config: Config, find_device: Callable[[], Optional[TorchTimer]] = find_timer) -> None:
        self._config = config
        self.find_device = find_device
        self.step_ns: Dict[str, float] = {}  # the usual length of a step on a device, by loop
        self.spare_timers: List[TorchTimer] = []  # of loops that have ended
        self.writer = Writer(config.stream, lambda: probe_event(_rank(), __version__))
        self.outside = Outside(self)
        self.current: ContextVar[Any] = ContextVar("benchprobe_loop", default=self.outside)
        self.next_number = count(1).__next__
        self._live: Dict[int, RunningLoop] = {}
        self._lock = threading.RLock()
        self._measurement: Optional[LoopMeasurement] = None
        self._counting_name: Optional[str] = None
        self._round = 0  # how often processes measured together have met for a loop that no longer counts
        self._complaints: Set[Tuple[str, str]] = set()
        os.register_at_fork(
            before=self.writer.before_fork,
            after_in_parent=self.writer.after_fork_in_parent,
            after_in_child=self._after_fork_in_child,
        )
        atexit.register(self._at_exit)

    @contextmanager
    def host_clock(self) -> Iterator[None]:
        """For loops whose steps wait for the device themselves: recording events would only slow them down."""
        before, self.find_device = self.find_device, no_device
        try:
            yield
        finally:
            self.find_device = before

    def enter(self, passage: RunningLoop) -> Optional[LoopMeasurement]:
        """A loop begins. Returns its measurement if it is the one that counts."""
        with self._lock:
            measurement = self._claim(passage)
            self._live[id(passage)] = passage
        self.writer.watch(passage)
        return measurement

    def leave(self, passage: RunningLoop) -> None:
        """The loop has ended and its last chunk was handed over."""
        self._live.pop(id(passage), None)
        self.writer.unwatch(passage)

    def measured_enough(self, name: str) -> bool:
        """Whether a loop of that name was stopped and must not run again."""
        measurement = self._measurement
        return measurement is not None and measurement.phase == STOPPED and name == self._counting_name

    def message(self, source: str, text: str, severity: str = "warning") -> None:
        self.writer.emit(message_event(source, text, severity))

    def complain(self, source: str, about: str, text: str, severity: str = "warning") -> None:
        """Sends only the first message about a thing: it may recur at every step."""
        if (source, about) not in self._complaints and len(self._complaints) < 1000:
            self._complaints.add((source, about))
            self.message(source, text, severity)

    def complain_about_value(self, name: str, text: str) -> None:
        self.complain("give", name, f"'{name}' was not recorded: {text}")

    def _claim(self, passage: RunningLoop) -> Optional[LoopMeasurement]:
        """The measurement, if this is the loop that counts; the next epoch continues it."""
        if _only_loads_data():
            return None
        name = passage.name
        if self._measurement is not None and name == self._counting_name:
            taken = any(other.measurement is self._measurement for other in self._live.values())
            return None if taken else self._measurement
        if not self._may_count(name):
            return None
        if self._measurement is not None:
            self._take_over(self._measurement)
        self._counting_name = name
        config = self._config
        meeting = meeting_at(config.barrier, self._round) if config.barrier else None
        self._measurement = LoopMeasurement(
            config.warmup, config.stop, meeting, self.writer.emit, self._agreement(name)
        )
        self._measurement.loop = self.next_number()
        return self._measurement

    def _may_count(self, name: str) -> bool:
        """The loop that counts is the requested one; else the first named "train", and until then the first of all."""
        if self._config.loop is not None:
            return name == self._config.loop
        # In a forked child only a loop of the name that counted in the parent continues to count.
        inherited = self._measurement is None and name == self._counting_name
        return inherited or self._counting_name is None or name == TRAIN

    def _agreement(self, name: str) -> Optional[RankLease]:
        try:
            return find_lease(name, self._config.warmup, self._config.stop)
        except Exception as error:
            text = f"cannot reach the other ranks ({type(error).__name__}: {error}); each stops on its own"
            self.message("ranks", text, "error")
            return None

    def _take_over(self, before: LoopMeasurement) -> None:
        """A loop named "train" begins after another one counted."""
        for other in self._live.values():
            if other.measurement is before:
                other.measurement = None
                other.announce()
        if before.has_met:
            before.withdraw()
            self._round += 1  # processes measured together meet again
        self.message("benchprobe", f"loop '{TRAIN}' counts from here on, no longer '{self._counting_name}'", "info")

    def _after_fork_in_child(self) -> None:
        self._lock = threading.RLock()
        self.writer.after_fork_in_child()
        self.outside.forget()
        for passage in list(self._live.values()):
            passage.detach()
        for timer in self.spare_timers:
            never_free(timer)
        self.spare_timers = []
        self._live = {}
        self.next_number = count(1).__next__
        if self._measurement is not None and self._measurement.phase != STOPPED:
            self._measurement = None  # the parent's; but only a loop of that name may count here

    def close(self) -> None:
        """Ends the record before the process ends."""
        atexit.unregister(self._at_exit)
        self._at_exit()

    def _at_exit(self) -> None:
        try:
            for passage in reversed(list(self._live.values())):  # such as one advanced by `next`
                if passage.thread == threading.get_ident():
                    passage.close()
            self.outside.settle()
            if self._measurement is not None:
                self._measurement.end()
            # `last_value` is set when a traceback was printed.
            how = "end" if getattr(sys, "last_value", None) is None else "exception"
            self.writer.close({"event": "probe_end", "t": perf_counter_ns(), "how": how})
        except Exception as error:  # the program has ended well; so must we
            sys.stderr.write(f"benchprobe: the end of the stream was not written: {error!r}\n")


def _only_loads_data() -> bool:
    """Whether this is a worker of a DataLoader: its loops are part of another process's steps."""
    worker_info = getattr(sys.modules.get("torch.utils.data"), "get_worker_info", None)
    return worker_info is not None and worker_info() is not None


def _rank() -> Optional[int]:
    """The rank that torchrun, mpirun or srun gave this process."""
    texts = (os.environ.get(variable, "") for variable in ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"))
    return next((int(text) for text in texts if text.isdigit()), None)
