"""Independent benchmarks on several nodes of a scheduler: one queue, and a process and a run for each node."""

from __future__ import annotations

import queue
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import CannotMeasure, Interrupted, InvalidInput
from benchwright.executors.connection import Connection
from benchwright.executors.interruption import stops_on_signals
from benchwright.executors.lender import Lender, Lending
from benchwright.executors.observer import Observer
from benchwright.executors.slurm import end_allocations
from benchwright.kinds.base import Resolved
from benchwright.kinds.registry import kind_of
from benchwright.runner.device_runs import RunProcess, pass_on
from benchwright.runner.device_worker import Said
from benchwright.runner.run import NodeOrder, RunOrder, executor_for, resolve_order, set_up
from benchwright.runs.fan_out_folder import FAN_OUT, fan_outs, read_parts, write_ended
from benchwright.runs.known_runs import find_run
from benchwright.runs.resume import NEWEST, to_resume, unfinished_runs
from benchwright.runs.run_folder import RunFolder, new_uid
from benchwright.runs.stored_plan import StoredPlan

_LOOK_S = 0.2
_MOST_MOVES = 2  # of a part whose node was lost
_LAST_WORDS = ("run", "idle", "error")


class FanOut(msgspec.Struct, frozen=True, kw_only=True):
    """Benchmarks to measure on several nodes. `order`: resolved. `folder`: says who measured what; None: there is none yet."""

    order: RunOrder
    folder: RunFolder | None = None


class FanOutEnd(msgspec.Struct, frozen=True, kw_only=True):
    """`missing`: benchmarks that no node measured."""

    folder: Path
    missing: tuple[str, ...] = ()


def fan_out_of(order: RunOrder) -> FanOut | None:
    """None: the order is for one run. Several nodes share what is independent; benchmarks that need several nodes at once, or
    alternate with each other, do not."""
    if order.resume is not None:
        return _resumed(order)
    if order.options.nodes == 1 or order.variations or order.only is not None:
        return None
    resolved = resolve_order(order)
    if len(parts_of(order, resolved)) < 2 or any(b.placement.machines > 1 for b in resolved.benchmarks):
        return None
    executor = executor_for(resolved.options, order.base)
    return FanOut(order=order) if isinstance(executor, Lending) and executor.lends() > 1 else None


def parts_of(order: RunOrder, resolved: Resolved) -> list[tuple[str, ...]]:
    """The names of benchmarks that must be measured by one node, since they alternate with each other and are compared: those
    that end with a verdict, and a model on several runtimes."""

    def shared(benchmark: Benchmark) -> tuple[str, str]:
        if order.options.interleave:
            return "", ""
        if benchmark.is_open:
            return "script", benchmark.source  # with all points of a sweep
        if benchmark.pair or (resolved.options.interleave and kind_of(benchmark).ends_with_verdict(benchmark)):
            return "pair", benchmark.pair
        return ("source", benchmark.source) if resolved.options.interleave else ("name", benchmark.name)

    parts: dict[tuple[str, str], list[str]] = {}
    for benchmark in resolved.benchmarks:
        parts.setdefault(shared(benchmark), []).append(benchmark.name)
    return [tuple(names) for names in parts.values()]


def _resumed(order: RunOrder) -> FanOut | None:
    folders = fan_outs(order.base.runs)
    if not folders.is_dir():
        return None
    resolved = resolve_order(order)
    word = order.resume or NEWEST
    if word != NEWEST and not (folders / word).is_dir():
        try:
            word = find_run(order.base.runs, word).read_plan().labels[FAN_OUT]
        except (InvalidInput, KeyError):
            return None  # an ordinary run, or none: whoever resumes it says so
    try:
        folder, stored = to_resume(folders, word, resolved.benchmarks, resolved.options)
    except InvalidInput:
        if word != NEWEST:
            raise
        return None
    others = unfinished_runs(order.base.runs) if word == NEWEST and not resolved.benchmarks else []
    if others and others[0][1].started > stored.started:
        return None
    options = msgspec.structs.replace(stored.options, wait=order.options.wait)
    resolved = Resolved(benchmarks=stored.asked or stored.benchmarks, options=options, name=stored.name)
    order = msgspec.structs.replace(order, resolved=resolved, name=stored.name, labels=stored.labels, resume=None)
    return FanOut(order=order, folder=folder)


def run_on_nodes(fan_out: FanOut, observer: Observer) -> FanOutEnd:
    """Measures everything that is not measured yet. Raises Interrupted if the user asked to stop, CannotMeasure if there were no
    nodes."""
    order = fan_out.order
    resolved, failed = set_up(order, resolve_order(order), observer)
    order = msgspec.structs.replace(order, resolved=resolved)
    folder = fan_out.folder or _begun(order, resolved)
    with folder.locked():
        end_allocations(str(folder.path))
        measured = {part.names for part in read_parts(folder.path) if not part.lost}
        parts = [names for names in parts_of(order, resolved) if names not in measured]
        executor = executor_for(resolved.options, order.base)
        if not isinstance(executor, Lending):
            raise InvalidInput("this executor lends no nodes", where="--on", remedy="write --on slurm or --on ray")
        work = PartQueue(parts)
        with executor.lender(str(folder.path), observer) as lender:
            _Nodes(order, failed, str(folder.path), lender, work, observer).run()
        missing = tuple(name for names in work.unmeasured for name in names)
        if not missing:
            write_ended(folder)
    return FanOutEnd(folder=folder.path, missing=missing)


def _begun(order: RunOrder, resolved: Resolved) -> RunFolder:
    stored = StoredPlan(
        uid=new_uid(),
        name=order.name or resolved.name,
        started=datetime.now().astimezone().isoformat(timespec="seconds"),
        benchmarks=resolved.benchmarks,
        options=resolved.options,
        labels=order.options.labels | order.labels,
    )
    folder = RunFolder.create(fan_outs(order.base.runs), stored.name, shared=resolved.options.share)
    folder.write_plan(stored)
    return folder


class _Part(msgspec.Struct):
    names: tuple[str, ...]
    lost_on: list[str] = []


class PartQueue:
    """Who measures what. A part whose node was lost goes to another one, at most twice. As long as others measure, one node
    without work is kept, in case one of theirs is lost. A run measures nothing twice: where there is no other node, it is to
    end, and another one of the same node may ask."""

    def __init__(self, parts: Sequence[tuple[str, ...]]) -> None:
        self._waiting = [_Part(names) for names in parts]
        self._measured_on: dict[str, _Part] = {}  # by node
        self._idle: list[str] = []
        self._given_up: list[_Part] = []

    @property
    def unmeasured(self) -> list[tuple[str, ...]]:
        return [part.names for part in (*self._given_up, *self._waiting, *self._measured_on.values())]

    @property
    def is_over(self) -> bool:
        """Nothing is left to measure."""
        return not self._waiting and not self._measured_on

    def asks(self, node: str) -> None:
        """The node has measured what it had."""
        self._measured_on.pop(node, None)
        self._idle.append(node)

    def loses(self, node: str) -> bool:
        """The node had to give up what it had; False: it goes to no other."""
        part = self._measured_on.pop(node, None)
        if part is None:
            return True
        part.lost_on.append(node)
        goes_on = len(part.lost_on) <= _MOST_MOVES
        (self._waiting if goes_on else self._given_up).insert(0, part)
        return goes_on

    def leaves(self, node: str) -> bool:
        """It is gone; False: what it had goes to no other."""
        if node in self._idle:
            self._idle.remove(node)
        return self.loses(node)

    def answers(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The next work of nodes that asked; nothing: they are to leave."""
        for node in list(self._idle):
            part = next((part for part in self._waiting if node not in part.lost_on), None)
            if part is not None:
                self._waiting.remove(part)
                self._idle.remove(node)
                self._measured_on[node] = part
                yield node, part.names
            elif self.is_over or (self._idle[1:] if not self._waiting else not self._others_may_have(node)):
                self._idle.remove(node)
                yield node, ()

    def _others_may_have(self, node: str) -> bool:
        others = {*self._idle, *self._measured_on} - {node}
        return any(other not in part.lost_on for other in others for part in self._waiting)


class _Nodes:
    """The processes of the nodes, from the first that is granted to the last that ends."""

    def __init__(
        self, order: RunOrder, failed: dict[str, str], folder: str, lender: Lender, work: PartQueue, observer: Observer
    ) -> None:
        self._order, self._failed, self._folder = order, failed, folder
        self._lender, self._work, self._observer = lender, work, observer
        self._lines: queue.SimpleQueue[tuple[str, Said]] = queue.SimpleQueue()
        self._processes: dict[str, RunProcess] = {}
        self._running: set[str] = set()
        self._connections: dict[str, Connection] = {}
        self._again: set[str] = set()  # that end only because they measure nothing twice
        self._problems: list[str] = []

    def run(self) -> None:
        with stops_on_signals(self._stop) as stopped:
            while self._running or (self._lender.waits and not self._work.is_over and not stopped()):
                if not self._work.is_over and not stopped():
                    self._begin()
                with suppress(queue.Empty):
                    self._hear(*self._lines.get(timeout=_LOOK_S))
                for node, names in self._work.answers():
                    self._processes[node].answer(names)
                    if not names and not self._work.is_over:
                        self._again.add(node)
        for process in self._processes.values():
            process.close()
        if stopped():
            name = Path(self._folder).name
            raise Interrupted(f"interrupted; resume with: benchwright run --resume={name}")
        if self._problems and len(self._problems) == len(self._processes) and not read_parts(Path(self._folder)):
            raise CannotMeasure("; ".join(self._problems))

    def _begin(self) -> None:
        for connection in self._lender.granted():
            self._begin_on(connection)

    def _begin_on(self, connection: Connection) -> None:
        name = connection.node.name
        node = name if name not in self._processes else f"{name} ({len(self._processes) + 1})"  # its second run
        self._connections[node] = connection
        ordered = NodeOrder(order=self._order, connection=connection, folder=self._folder, failed=self._failed)
        self._processes[node] = RunProcess(node, ordered, self._lines)
        self._running.add(node)

    def _stop(self) -> None:
        self._again.clear()
        for process in self._processes.values():
            process.stop()

    def _hear(self, node: str, said: Said) -> None:
        if node not in self._running:
            return  # it had its last word, and has now ended
        goes_on = True
        if said.what == "take":
            self._work.asks(node)
        elif said.what == "lost":
            goes_on = self._work.loses(node)
        elif said.what in _LAST_WORDS:
            self._running.remove(node)
            goes_on = self._work.leaves(node)
            if node in self._again and not self._work.is_over:
                self._begin_on(self._connections[node])
            else:
                self._lender.give_back(self._connections[node].node.name)
            if said.what == "error":
                self._problems.append(f"{node}: {said.text}")
        if not goes_on:
            self._observer.on_trouble(
                f"{node}: what it measured was lost, for the third time; it goes to no other node"
            )
        pass_on(self._observer, node, said)
