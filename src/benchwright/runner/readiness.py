"""Whether benchmarks have what they need before they can run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.health import Leftovers
from benchwright.core.job import Job
from benchwright.core.machine import Machine
from benchwright.core.note import Note
from benchwright.core.quantities import format_duration
from benchwright.executors.base import Executor
from benchwright.executors.observer import Observer, is_this_machine
from benchwright.executors.registry import is_here
from benchwright.kinds.base import nothing_ready
from benchwright.kinds.registry import by_kind
from benchwright.options.table import Options
from benchwright.runs.run_folder import read_marks


def busy_notes(machine: Machine) -> list[Note]:
    """Whether the machine has much to do before anything is measured."""
    load = os.getloadavg()[0] if is_this_machine(machine) else 0.0
    if machine.cores <= 0 or load <= 0.5 * machine.cores:
        return []
    cores = f"{machine.cores} core{'' if machine.cores == 1 else 's'}"
    text = f"the machine was busy before this run began (load {load:.1f} on {cores})"
    return [Note(text=text, kind="busy")]


def not_ready(benchmarks: Sequence[Benchmark], options: Options) -> dict[str, str]:
    """Benchmarks that lack something before they can run, such as an environment or data, with what to do about it."""
    found: dict[str, str] = {}
    for kind, same in by_kind(b for b in benchmarks if b.enabled):
        found |= kind.not_ready(same, options)
    return found


def refused(benchmarks: Sequence[Benchmark], options: Options) -> dict[str, str]:
    """Benchmarks that a run cannot make ready, and why; raises what it would raise if none is left."""
    enabled = [b for b in benchmarks if b.enabled]
    found: dict[str, str] = {}
    for kind, same in by_kind(enabled):
        found |= kind.refused(same)
    if found and all(b.name in found for b in enabled):
        kind, same = by_kind(enabled)[0]
        error = kind.refusal(same, options)
        reasons = [f"{name}: {why}" for name, why in found.items()]
        raise error if isinstance(error, InvalidInput) else CannotMeasure(nothing_ready(reasons))
    return found


def refuse_if_none_is_ready(benchmarks: Sequence[Benchmark], options: Options, failed: Mapping[str, str]) -> None:
    """If some can be run, they are, and the others fail with their reason."""
    enabled = [b for b in benchmarks if b.enabled]
    lacking = not_ready(enabled, options)
    if enabled and all(b.name in lacking for b in enabled):
        if any(b.name in failed for b in enabled):
            reasons: dict[str, list[str]] = {}
            for name, why in lacking.items():
                reasons.setdefault(failed.get(name, why), []).append(name)
            raise CannotMeasure(nothing_ready([f"{', '.join(names)}: {why}" for why, names in reasons.items()]))
        kind, same = by_kind(enabled)[0]
        raise kind.refusal(same, options)


# Before anything is measured: ending what an earlier attempt at the run left behind, and telling of what others left.


_MOST_NAMES = 5


def clear_leftovers(folder: Path, executor: Executor) -> tuple[Note, ...]:
    """Ends leftovers of earlier attempts, and returns notes about them. The caller holds the folder: nobody else measures into it."""
    return tuple(_notes(executor.end_leftovers(read_marks(folder))))


def _notes(found: Leftovers) -> list[Note]:
    notes = []
    if found.ended:
        text = "an earlier attempt at this run was killed; its leftover processes were ended before measuring"
        notes.append(Note(text=text, evidence=_listed(found.ended)))
    if found.left:
        text = "leftover processes of an earlier attempt at this run cannot be ended and keep running"
        notes.append(Note(text=text, evidence=_listed(found.left), severity="error", kind="busy"))
    if found.unknown:
        text = "nodes that did not answer may still run processes of an earlier attempt at this run"
        notes.append(Note(text=text, evidence=_listed(found.unknown), kind="busy"))
    if found.of_others:
        text = "another benchwright run was killed and its processes are still running; resume it to end them, or kill them"
        notes.append(Note(text=text, evidence=_listed(found.of_others), kind="busy"))
    return notes


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


# Pauses between launches: a machine cools down, a power meter settles. They are no part of any measurement.


_LOOK_S = 0.1  # how often to see whether the run was asked to stop
_WORTH_TELLING_S = 1.0
_NAME = "pause"


class Cooldown:
    """Remembers when the last launch ended. A cooldown counts from then, so time spent otherwise is not waited again."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._ended: float | None = None

    def ended(self) -> None:
        """A launch has just ended."""
        self._ended = self._clock()

    def wait(self, jobs: Sequence[Job], stopped: Callable[[], bool], observer: Observer) -> None:
        """As long as `jobs` want, or until the run is asked to stop."""
        now = self._clock()
        cooled = now if self._ended is None else self._ended + max((job.cooldown_s for job in jobs), default=0.0)
        until = max(cooled, now) + max((job.wait_s for job in jobs), default=0.0)
        if until - now >= _WORTH_TELLING_S:
            observer.on_step(_NAME, f"waiting {format_duration(until - now)} before {jobs[0].id}")
        while not stopped() and (left := until - self._clock()) > 0:
            self._sleep(min(left, _LOOK_S))
        if until - now >= _WORTH_TELLING_S:
            observer.on_step_done(_NAME)


# `--lock-clocks`: the clocks of this machine's GPUs held at one frequency for a run.


OPTION = "--lock-clocks"


@contextmanager
def locked_clocks(wanted: str | None, options: Options, observer: Observer) -> Iterator[dict[str, str]]:
    """The labels of a run whose clocks are locked; none if nobody wants that. InvalidInput where it is not possible."""
    if wanted is None:
        yield {}
        return
    from benchwright.agent.machine.clock_lock import AUTO, CannotLock, ClockLock

    if wanted != AUTO and not (wanted.isdigit() and 0 < int(wanted) < 100_000):
        raise InvalidInput(f"'{wanted}' is no clock", where=OPTION, remedy="write a number of MHz, or nothing")
    if not is_here(options.on, None if options.suite_paths is None else options.suite_paths.system):
        where = options.on or "each node"
        raise InvalidInput(
            "clocks can be locked on this machine only", where=OPTION, remedy=f"run it on {where} itself"
        )
    try:
        lock = ClockLock(wanted)
    except CannotLock as error:
        raise InvalidInput(
            f"the clocks of the GPUs cannot be locked: {error}", where=OPTION, remedy="leave it out"
        ) from None
    try:
        yield {"gpu_clock_mhz": ",".join(map(str, dict.fromkeys(lock.clocks)))}
    finally:
        if (trouble := lock.close()) is not None:
            observer.on_trouble(trouble)
