"""Makes the run of one device or node, in a separate process: the order comes on stdin, events go to stdout, a line
each. A node's run asks for more to measure whenever it has ended a part of the work; the answer is a line on stdin.

Why a process: Ctrl-C ends a run in an orderly way only in the main thread, and only there a pattern that never ends is stopped.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import IO

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BenchwrightError, Interrupted
from benchwright.core.job import Job
from benchwright.core.run import Launch, Run
from benchwright.core.status import Status
from benchwright.executors.lender import LentNode
from benchwright.executors.observer import Observer
from benchwright.runner.run import NodeOrder, RunOrder, Share, run, site_for
from benchwright.runs.delivery import NotReported
from benchwright.runs.fan_out_folder import FAN_OUT, NODE, MeasuredPart, add_part

_LOOK_S = 0.2


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a worker. `what`: step, done, note, trouble, output; take, when it wants more to measure, and lost, if what it
    had must be measured elsewhere; last run, with the folder, idle, if there was nothing for it, or error, with the exit code."""

    what: str
    text: str
    code: int = 0


def send_order(order: RunOrder | NodeOrder, pipe: IO[bytes]) -> None:
    """To a worker. Both ends are benchwright of this user, so a pickle is safe."""
    pickle.dump(order, pipe)
    pipe.flush()


class _Telling(Observer):
    """Says what happens on stdout."""

    def __init__(self, stdout: int) -> None:
        self._stdout = stdout
        self._lock = threading.Lock()

    def say(self, what: str, text: str, code: int = 0) -> None:
        line = memoryview(msgspec.json.encode(Said(what, text, code)) + b"\n")
        with self._lock:
            while line:
                line = line[os.write(self._stdout, line) :]

    def on_launch(self, number: int, total: int, jobs: Sequence[Job]) -> None:
        names = ", ".join(dict.fromkeys(job.benchmark for job in jobs))
        self.say("step", f"{number} of {total}: {names}")

    def on_recorded(self, number: int, total: int, launches: Sequence[Launch]) -> None:
        for launch in launches:
            if launch.status is Status.FAILED:
                self.say("note", f"{launch.job} failed: {launch.detail or launch.reason}")

    def on_trouble(self, text: str) -> None:
        self.say("trouble", text)

    def on_output(self, job_id: str, text: str) -> None:
        self.say("output", text)

    def on_note(self, text: str) -> None:
        self.say("note", text)

    def on_step(self, name: str, what: str, log: str | None = None) -> None:
        self.say("step", what)

    def end(self, made: Run, code: int = 0) -> None:
        """It made its run; `code`: at least this is the exit code."""
        failed = sum(result.status is Status.FAILED for result in made.results)
        self.say("done", f"{failed} of {len(made.results)} failed" if failed else "done")
        self.say("run", str(made.folder), code)


class _Answers:
    """The lines of our stdin. When whoever started this is gone, its end is closed."""

    def __init__(self) -> None:
        self.lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with open(0, "rb", buffering=0, closefd=False) as stdin:
            for line in stdin:
                self.lines.put(line)
        os.kill(os.getpid(), signal.SIGTERM)


class _Work:
    """The work that this run shares with others: see `SharedWork`."""

    def __init__(self, ordered: NodeOrder, telling: _Telling, answers: _Answers) -> None:
        assert ordered.order.resolved is not None
        self.everything = ordered.order.resolved.benchmarks
        self._folder, self._node = ordered.folder, ordered.connection.node.name
        self._telling, self._answers = telling, answers
        self._names: tuple[str, ...] = ()

    def take(self, stopped: Callable[[], bool]) -> tuple[Benchmark, ...]:
        self._telling.say("take", "")
        while not stopped():
            with suppress(queue.Empty):
                self._names = msgspec.json.decode(self._answers.lines.get(timeout=_LOOK_S), type=tuple[str, ...])
                return tuple(b for b in self.everything if b.name in self._names)
        return ()

    def end(self, run: str, results: Sequence[str], *, lost: bool) -> None:
        part = MeasuredPart(names=self._names, run=run, node=self._node, results=tuple(results), lost=lost)
        add_part(self._folder, part)
        if lost:
            self._telling.say("lost", "")


def _run_on_node(ordered: NodeOrder, telling: _Telling, answers: _Answers) -> None:
    order, node = ordered.order, ordered.connection.node.name
    assert order.resolved is not None
    site = site_for(order.resolved.options, order.base)
    work = _Work(ordered, telling, answers)
    lent = partial(LentNode, site, ordered.connection, ordered.folder)
    with lent() as executor:
        executor.machine()  # before anything is taken: CannotMeasure if the node cannot be used
        if not (first := work.take(lambda: False)):
            telling.say("idle", "")
            return
        resolved = msgspec.structs.replace(order.resolved, benchmarks=first)
        labels = order.labels | {FAN_OUT: os.path.basename(ordered.folder), NODE: node}
        order = msgspec.structs.replace(order, resolved=resolved, labels=labels)
        share = Share(work=work, failed=ordered.failed, another=lent)
        telling.end(run(order, telling, executor=executor, share=share))


def main() -> int:
    stdout = os.dup(1)
    os.dup2(2, 1)  # whatever prints, prints elsewhere
    telling = _Telling(stdout)
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        order: RunOrder | NodeOrder = pickle.load(stdin)  # noqa: S301 see send_order
    answers = _Answers()
    try:
        if isinstance(order, NodeOrder):
            _run_on_node(order, telling, answers)
        else:
            telling.end(run(order, telling))
    except NotReported as error:
        telling.say("trouble", str(error))
        telling.end(error.run, error.exit_code)
    except BenchwrightError as error:
        telling.say("error", str(error), error.exit_code)
    except KeyboardInterrupt:
        telling.say("error", "interrupted", Interrupted.exit_code)
    except Exception as error:
        # A mistake of ours on one device must not take the others' results along.
        telling.say("error", f"{type(error).__name__}: {error}", BenchwrightError.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
