"""Runs jobs that are plain programs on a board: what they use is sent, what they print comes back.

The stream of each job is written here. The board has no agent, so nothing samples the program's memory and CPU time.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from benchwright.agent.message_pipe import Speaker
from benchwright.agent.output.job_log import JobLog
from benchwright.agent.stream import VERSION, StreamWriter
from benchwright.core.errors import CannotMeasure
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.node.leftovers import Leftovers, Mark
from benchwright.core.secrets.redact import redact_text, redact_words
from benchwright.executors.base import Listener
from benchwright.executors.boards.base import Board, BoardCommand, BoardExit, BoardOutput
from benchwright.executors.boards.programs import why_not_runnable
from benchwright.executors.observer import Observer
from benchwright.executors.transfer.depot import place_below
from benchwright.executors.transfer.needs import needs_of
from benchwright.executors.transfer.relocation import Relocation

_NS = 1_000_000_000
_LOOK_S = 0.25
_COARSE_S = 0.005  # a clock coarser than this is worth a warning


class BoardExecutor:
    """The jobs of one `run` run at the same time. What was sent stays until the executor is closed."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._stops = 0
        self._sent: dict[str, str] = {}  # path here → there

    def __enter__(self) -> Self:
        self._board.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._board.__exit__(kind, error, trace)

    def machine(self) -> Machine:
        return self._board.properties().machine

    def end_leftovers(self, marks: Sequence[Mark]) -> Leftovers:
        return Leftovers()  # the board ends what an earlier run left when it is opened

    def stop(self) -> None:
        self._stops += 1

    def run(self, jobs: Sequence[Job], listener: Listener) -> list[Outcome]:
        if self._stops or not jobs:
            return [Outcome(job=job.id, stopped=True) for job in jobs]
        said: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        records = [_Record(job, listener, said) for job in jobs]
        try:
            relocation = self._send(jobs, listener)
        except CannotMeasure as error:
            for record in records:
                record.finish(BoardExit(detail=str(error), stopped=self._stops > 0))
            return [record.outcome for record in records]
        threads = [
            threading.Thread(target=self._run_one, args=(record, relocation.job(record.job), said), daemon=True)
            for record in records
        ]
        for thread in threads:
            thread.start()
        while not all(record.is_finished for record in records):
            try:
                said.get(timeout=_LOOK_S)()
            except queue.Empty:
                pass
            for record in records:
                record.advance()
        for thread in threads:
            thread.join()
        return [record.outcome for record in records]

    def _send(self, jobs: Sequence[Job], listener: Listener) -> Relocation:
        """Everything the jobs use; nothing is sent twice."""
        made = {os.path.dirname(job.stream) for job in jobs}
        probes = {job.probe_path for job in jobs if job.probe_path is not None}
        needs = needs_of(jobs, made | probes)
        if needs.environments:
            raise CannotMeasure(
                f"{self._board.name} runs plain programs, and {needs.environments[0]} is a Python environment; "
                "name a program, or 'python3' to use one that is installed there"
            )
        folder = self._board.folder
        new = {path: place_below(folder, path) for path in needs.trees if path not in self._sent}
        if new:
            tell = listener.on_step if isinstance(listener, Observer) else None

            def progress(done: int, total: int) -> None:
                if tell is not None:
                    tell(self._board.name, f"sending {done / 1e6:.0f} of {total / 1e6:.0f} MB")

            notes = self._board.push({there: here for here, there in new.items()}, progress, made)
            if isinstance(listener, Observer):
                listener.on_step_done(self._board.name)
                for note in (*needs.notes, *notes):
                    listener.on_note(note)
        self._sent |= new
        return Relocation({path: f"{folder}/made{path}" for path in made} | self._sent)

    def _run_one(self, record: _Record, job: Job, said: queue.SimpleQueue[Callable[[], None]]) -> None:
        """In a thread of its own."""
        machine = self.machine()
        problem = why_not_runnable(record.job, machine.architecture)
        words = ("/bin/sh", "-c", " ".join(job.argv)) if job.shell else job.argv
        if problem is not None:
            ended = BoardExit(detail=f"{self._board.name}: {problem}")
        else:
            command = BoardCommand(
                argv=words, cwd=self._folder_of(job), env=job.env, cores=job.cores,
                timeout_s=job.timeout_s, grace_s=job.grace_s,
            )  # fmt: skip
            try:
                ended = self._board.run(command, record, lambda: self._stops > 0)
                for here, there in zip(record.job.fetch, job.fetch, strict=True):
                    self._board.pull(there, here)
            except CannotMeasure as error:
                ended = BoardExit(detail=str(error))
        said.put(lambda: record.finish(ended))

    def _folder_of(self, job: Job) -> str:
        """Its own, or the run's if that was not sent."""
        return job.cwd if job.cwd.startswith(self._board.folder) else self._board.folder


class _Record(BoardOutput):
    """Writes the stream and the log of one job. What comes from the board's threads is done in the main one."""

    def __init__(self, job: Job, listener: Listener, said: queue.SimpleQueue[Callable[[], None]]) -> None:
        self.job = job
        self._listener = listener
        self._said = said
        self._stream = StreamWriter(job.stream)
        self._speaker_fd = os.open(os.devnull, os.O_WRONLY)
        quiet = msgspec.structs.replace(job, echo=False)  # echoed here, as it comes
        self._append("stream", version=VERSION, job=job.id, wall=time.time())
        self._log = JobLog(quiet, self._stream, Speaker(self._speaker_fd))
        self._began_ns = time.perf_counter_ns()
        self._has_started = False
        self.is_finished = False
        self.outcome = Outcome(job=job.id)

    # Called by the board.

    def started(self, pid: int) -> None:
        began_ns, wall = time.perf_counter_ns(), time.time()
        self._said.put(lambda: self._start(pid, began_ns, wall))

    def stdout(self, data: bytes) -> None:
        self._said.put(lambda: self._print(data))

    def stderr(self, data: bytes) -> None:
        self._said.put(lambda: self._print(data))

    # In the main thread.

    def _start(self, pid: int, began_ns: int, wall: float) -> None:
        self._began_ns, self._has_started = began_ns, True
        job = self.job
        argv = (redact_text(job.argv[0]),) if job.shell else redact_words(job.argv)
        self._stream.append(
            "start",
            t=began_ns,
            wall=wall,
            pid=pid,
            argv=argv,
            cwd=job.cwd,
            env={},
            devices=job.devices,
            cores=job.cores,
        )
        self._listener.on_started(job.id, pid)

    def _print(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._log.fd, view) :]
        if self.job.echo:
            self._listener.on_output(self.job.id, data.decode(errors="replace"))

    def advance(self) -> None:
        """Look for metrics in what was printed."""
        if not self.is_finished:
            self._log.advance(time.perf_counter_ns())

    def finish(self, ended: BoardExit) -> None:
        succeeded = ended.exit_code == 0 and not (ended.timed_out or ended.stopped)
        detail = ended.detail
        if detail is None and ended.timed_out:
            detail = f"it ran longer than {self.job.timeout_s:g} s; raise the timeout if it needs more"
        if self._has_started:
            self._stream.append("exit", t=self._began_ns + int(ended.duration_s * _NS))
            if ended.resolution_s > _COARSE_S:
                text = (
                    f"the board's clock counts in steps of {ended.resolution_s * 1000:g} ms: short times are imprecise"
                )
                self._append("message", severity="warning", source="board", text=text)
        elif detail is not None:
            self._append("message", severity="error", source="board", text=detail)
        self._log.finish(lambda: False, succeeded=succeeded)
        self.outcome = Outcome(
            job=self.job.id, exit_code=ended.exit_code, signal=ended.signal, timed_out=ended.timed_out,
            stopped=ended.stopped, duration_s=ended.duration_s, detail=detail,
        )  # fmt: skip
        how = {name: value for name, value in msgspec.to_builtins(self.outcome).items() if name != "job"}
        self._append("end", wall=time.time(), **how, cpu_s=None, max_rss_bytes=None)
        if not self._stream.flush(5.0) or self._stream.lost:
            self.outcome = msgspec.structs.replace(self.outcome, exit_code=None, detail=self._stream.trouble)
        self._stream.close()
        os.close(self._speaker_fd)
        self.is_finished = True
        self._listener.on_finished(self.outcome)

    def _append(self, event: str, **values: object) -> None:
        self._stream.append(event, t=time.perf_counter_ns(), **values)
