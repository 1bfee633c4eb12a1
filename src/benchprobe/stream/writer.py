"""The background thread that formats and writes what loops recorded.

Loops and `give` only append to lists and deques. This thread wakes a few times a second and writes the lines. It also reads
open chunks, so a killed process loses less than a second.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time
from collections import deque
from typing import Callable, Deque, Dict, Optional, Protocol, Union

from benchprobe.stream.channel import PIPE_LINE_BYTES, Channel
from benchprobe.stream.events import Chunk, Event, left_over, line, message_event, steps_lines

WAKE_INTERVAL_S = 0.25
EXIT_PATIENCE_S = 0.5  # how long the program's end may wait for a blocked stream
LOCK_PATIENCE_S = 5.0
LONG_CHUNK = 4096  # entries
MAX_PENDING = 50_000  # events and chunks waiting for the thread; more are dropped and counted


class Live(Protocol):
    """A loop that is running: its open chunk can be looked at."""

    chunk: Optional[Chunk]


class WriterThread:
    """Calls `work` a few times a second, and whenever `wake` is set.

    Started below `threading`: the program's list of threads and its trace hooks stay as they are.
    """

    def __init__(self, wake: threading.Event, work: Callable[[], None]) -> None:
        self._wake = wake
        self._work = work
        self._stopping = False
        self._native_id: Optional[int] = None
        self._process = os.getpid()
        _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        """Returns when the thread is gone, also for the operating system, or after a moment."""
        self._stopping = True
        self._wake.set()
        give_up = time.monotonic() + 0.1
        while time.monotonic() < give_up:
            if self._native_id is not None and not os.path.exists(f"/proc/self/task/{self._native_id}"):
                return
            time.sleep(0.0002)

    def _run(self) -> None:
        self._native_id = threading.get_native_id()
        while not self._stopping and os.getpid() == self._process:
            self._wake.wait(WAKE_INTERVAL_S)
            self._wake.clear()
            if not self._stopping:
                self._work()


class Writer:
    """`first_event` makes the event that a process begins with, as soon as it has anything to say."""

    def __init__(self, target: str, first_event: Callable[[], Event]) -> None:
        self._channel = Channel(target, self._lost_line)
        self._first_event = first_event
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._pending: Deque[Union[Event, Chunk]] = deque()
        self._live: Dict[int, Live] = {}
        self._lock = threading.Lock()  # held by whoever makes and writes lines
        self._wake = threading.Event()
        self._process = os.getpid()
        self._running = self._begun = self._ended = False
        self._dropped = 0

    @property
    def takes_long_lines(self) -> bool:
        return self._channel.max_line_bytes > PIPE_LINE_BYTES

    def hand_over(self, chunk: Chunk) -> None:
        """Takes a chunk that is complete. A long one is written soon, while it is in the processor's cache."""
        self.emit(chunk)
        if len(chunk.entries) > LONG_CHUNK:
            self._wake.set()

    def watch(self, loop: Live) -> None:
        self._live[id(loop)] = loop

    def unwatch(self, loop: Live) -> None:
        self._live.pop(id(loop), None)

    def flush(self, patience_s: float = 0.0) -> None:
        """Writes everything there is, in the calling thread."""
        if not self._lock.acquire(timeout=LOCK_PATIENCE_S):
            return  # the thread hangs in a write that nobody reads
        try:
            self._write_all()
            self._channel.retry(patience_s)
        finally:
            self._lock.release()

    def close(self, event: Event) -> None:
        """Writes everything, then `event`, the process's last one, if it ever said anything."""
        self._ended = True
        if self._begun:
            self._pending.append(event)
            self.flush(EXIT_PATIENCE_S)

    def before_fork(self) -> None:
        """Lets the thread finish its line, so that the child does not start with half of it.

        If Python would warn about forking with threads, stops the thread and writes what is pending; the next event restarts it.
        """
        if sys.version_info >= (3, 12) and self._running:
            self._thread.stop()
            self._running = False
            self._flush_quietly()
        self._lock.acquire(timeout=1.0)

    def after_fork_in_parent(self) -> None:
        if self._lock.locked():
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Pending lines are the parent's to write. This process starts its own thread when needed."""
        self._start_afresh()
        self._channel.forget()

    def emit(self, what: Union[Event, Chunk]) -> None:
        """Takes it; the thread writes it within a fraction of a second."""
        is_first = not self._begun
        if is_first:
            self._begun = True
            self._pending.append(self._first_event())
            _flush_at_end_of_worker(self)
        if not self._running:
            self._start()
        if len(self._pending) >= MAX_PENDING and not self._wait_for_room():
            self._dropped += 1
            return
        self._pending.append(what)
        if is_first:
            self._wake.set()  # so that even a process killed a moment later has reported its start
        if self._ended:  # too late for the thread
            self.flush(EXIT_PATIENCE_S)

    def _start(self) -> None:
        try:
            self._thread = WriterThread(self._wake, self._flush_quietly)
            self._running = True
        except RuntimeError:  # the interpreter is ending, or out of threads: `close` writes everything
            self._running = False

    def _wait_for_room(self) -> bool:
        """Lets the thread catch up; only a loop with steps of a microsecond or so ever comes here."""
        give_up = time.monotonic() + 2.0
        while len(self._pending) >= MAX_PENDING:
            if time.monotonic() > give_up:
                return False
            self._wake.set()
            time.sleep(0.001)
        return True

    def _flush_quietly(self) -> None:
        try:
            self.flush()
        except Exception as error:  # the thread must go on: later events may be fine
            self._pending.append(message_event("benchprobe", f"writing failed: {error!r}", "error"))

    def _write_all(self) -> None:
        self._channel.retry()
        if self._dropped:
            self._channel.put(self._lost_line(self._dropped))
            self._dropped = 0
        # Open chunks are picked first: those closed before them are then pending, which keeps the order.
        open_chunks = [loop.chunk for loop in list(self._live.values())]
        for _ in range(len(self._pending)):
            self._write(self._pending.popleft())
        for chunk in open_chunks:
            if chunk is not None:
                self._write_steps(chunk)

    def _write(self, what: Union[Event, Chunk]) -> None:
        if isinstance(what, dict):
            self._channel.put(line(what, self._process))
            return
        self._write_steps(what)
        for values in left_over(what):  # its step never finished: an exception
            event = {"event": "give", "t": what.last_end, "loop": what.loop, "values": values}
            self._channel.put(line(event, self._process))

    def _write_steps(self, chunk: Chunk) -> None:
        for made in steps_lines(chunk, self._process, self._channel.max_line_bytes):
            self._channel.put(made)

    def _lost_line(self, events: int) -> bytes:
        return line({"event": "lost", "t": time.perf_counter_ns(), "events": events}, self._process)


def _flush_at_end_of_worker(writer: Writer) -> None:
    """Workers of `multiprocessing` leave without running `atexit`, but run their own finalizers."""
    process = sys.modules.get("multiprocessing.process")
    finalizers = sys.modules.get("multiprocessing.util")
    if process is not None and finalizers is not None and process.parent_process() is not None:
        finalizers.Finalize(None, writer.flush, args=(EXIT_PATIENCE_S,), exitpriority=-100)
