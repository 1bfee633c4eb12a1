"""Runs jobs that are plain programs on a board: what they use is sent, what they print comes back.

The stream of each job is written here. The board has no agent, so nothing samples the program's memory and CPU time.
"""

from __future__ import annotations

import os
import queue
import select
import signal
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from benchwright.agent.message_pipe import MessageWriter
from benchwright.agent.output.job_log import JobLog
from benchwright.agent.stream import VERSION, StreamWriter
from benchwright.core.errors import CannotMeasure
from benchwright.core.health import Leftovers, Mark
from benchwright.core.job import Job, Outcome
from benchwright.core.machine import Machine
from benchwright.core.secrets import redact_text, redact_words
from benchwright.executors.base import Listener
from benchwright.executors.boards.base import Board, BoardCommand, BoardExit, BoardOutput
from benchwright.executors.observer import Observer
from benchwright.executors.transfer.depot import place_below
from benchwright.executors.transfer.needs import needs_of
from benchwright.executors.transfer.push_progress import push_progress
from benchwright.executors.transfer.relocation import Relocation
from benchwright.executors.transfer.shell import ConnectionLost

# Whether a program of this machine can run on a board of another kind.


_MAGIC = b"\x7fELF"
# ELF's number of a processor → what `uname -m` says there.
_PROCESSORS = {
    3: ("i386", "i486", "i586", "i686", "x86_64"),
    40: ("arm", "armv6l", "armv7l", "armv8l", "aarch64"),
    62: ("x86_64", "amd64"),
    183: ("aarch64", "arm64"),
    243: ("riscv64", "riscv32"),
}


def why_not_runnable(job: Job, architecture: str) -> str | None:
    """Why the job's own program cannot run on a machine of that architecture; None if nothing is known against it."""
    program = os.path.join(job.cwd, job.argv[0]) if job.argv and "/" in job.argv[0] else ""
    try:
        with open(program, "rb") as file:
            head = file.read(20)
    except (OSError, ValueError):
        return None
    if len(head) < 20 or head[:4] != _MAGIC:
        return None
    (number,) = struct.unpack("<H" if head[5] == 1 else ">H", head[18:20])
    known = _PROCESSORS.get(number)
    if known is None or architecture in known:
        return None
    return f"{program} is a program for {known[0]}, the board is {architecture}; build it for the board"


# Steps of a board's job that run on this machine: data is made and looked at here, only the program needs the board.


_LOOK_S = 0.25


def run_here(
    script: str, cwd: str, timeout_s: float | None, output: Callable[[bytes], None], stopped: Callable[[], bool]
) -> BoardExit | None:
    """Runs a script for `sh` to its end; None if it succeeded. What it prints goes to `output`."""
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", script],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return BoardExit(detail=f"a step on this machine could not be started: {error.strerror}")
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    timed_out = was_stopped = False
    assert process.stdout is not None
    with process.stdout as printed:
        while True:
            if select.select([printed], [], [], _LOOK_S)[0]:
                data = os.read(printed.fileno(), 1 << 16)
                if not data:
                    break
                output(data)
            timed_out = deadline is not None and time.monotonic() > deadline
            was_stopped = stopped()
            if timed_out or was_stopped:
                os.killpg(process.pid, signal.SIGKILL)  # its own group: nothing else is in it
                break
    code = process.wait()
    if timed_out or was_stopped:
        return BoardExit(timed_out=timed_out, stopped=was_stopped, detail="in a step on this machine")
    return None if code == 0 else BoardExit(exit_code=code, detail=f"a step on this machine failed (exit code {code})")


_NS = 1_000_000_000
_COARSE_S = 0.005  # a clock coarser than this is worth a warning


class BoardExecutor:
    """The jobs of one `run` run at the same time. What was sent stays until the executor is closed.

    `spare`: finds another board of the same sort if this one is lost; its jobs then run there. None: there is none.
    `base`: the base folder, which is not sent with a folder that holds it.
    """

    def __init__(
        self, board: Board, spare: Callable[[], Board | None] = lambda: None, *, base: str | None = None
    ) -> None:
        self._board = board
        self._spare = spare
        self._base = base
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
        jobs = [_apart(job) for job in jobs]
        outcomes: dict[str, Outcome] = {}
        note: str | None = None
        while open_jobs := [job for job in jobs if job.id not in outcomes]:
            if self._stops:
                outcomes |= {job.id: Outcome(job=job.id, stopped=True) for job in open_jobs}
                break
            records = self._attempt(open_jobs, listener, note)
            lost = [record for record in records if record.lost is not None]
            note = self._replace_board() if lost else None
            for record in records:
                if record.lost is not None and note is not None:
                    record.forget()
                else:
                    record.finish(record.lost)
                    outcomes[record.job.id] = record.outcome
        return [outcomes[job.id] for job in jobs]

    def _attempt(self, jobs: Sequence[Job], listener: Listener, note: str | None) -> list[_Record]:
        """Runs them to their ends, unless the board is lost."""
        said: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        records = [_Record(job, listener, said) for job in jobs]
        try:
            relocation = self._send(jobs, listener)
        except CannotMeasure as error:
            lost = isinstance(error, ConnectionLost)
            for record in records:
                record.end(BoardExit(detail=str(error), stopped=self._stops > 0, lost=lost))
            return records
        threads = [
            threading.Thread(target=self._run_one, args=(record, relocation.job(record.job), said), daemon=True)
            for record in records
        ]
        for record, thread in zip(records, threads, strict=True):
            if note is not None:
                record.note(note)
            thread.start()
        while not all(record.has_ended for record in records):
            try:
                said.get(timeout=_LOOK_S)()
            except queue.Empty:
                pass
            for record in records:
                record.advance()
        for thread in threads:
            thread.join()
        return records

    def _replace_board(self) -> str | None:
        """Goes on with a spare board, if there is one; returns what to say about it."""
        while not self._stops and (board := self._spare()) is not None:
            try:
                board.__enter__()
            except CannotMeasure:
                continue  # lost as well, or in use
            self._board.__exit__(None, None, None)
            gone, self._board, self._sent = self._board.name, board, {}
            return f"{gone} was lost, so this ran on {board.name}"
        return None

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
            progress = push_progress(listener, self._board.name)
            without = made | ({self._base} if self._base is not None else set())
            notes = self._board.push({there: here for here, there in new.items()}, progress, without)
            if isinstance(listener, Observer):
                listener.on_step_done(self._board.name)
                for note in (*needs.notes, *notes):
                    listener.on_note(note)
        self._sent |= new
        relocation = Relocation({path: f"{folder}/made{path}" for path in made} | self._sent)
        self._send_made(jobs, relocation)
        return relocation

    def _send_made(self, jobs: Sequence[Job], relocation: Relocation) -> None:
        """Files that were written for the jobs, with the paths there in them, and folders that they write to."""
        files = {path: text for job in jobs for path, text in job.files.items()}
        folders = {folder for job in jobs for folder in job.folders} | {os.path.dirname(path) for path in files}
        tops = [f for f in folders if not any(f != other and f.startswith(f"{other}/") for other in folders)]
        new = [folder for folder in tops if folder not in self._sent]
        if not new:
            return
        with tempfile.TemporaryDirectory(prefix="benchwright-") as aside:
            for path in (path for path in (*folders, *map(os.path.dirname, files)) if _top_of(path, new)):
                os.makedirs(f"{aside}{path}", exist_ok=True)
            for path, text in files.items():
                if _top_of(path, new):
                    with open(f"{aside}{path}", "w", encoding="utf-8") as file:
                        file.write(relocation.there(text))
            self._board.push({relocation.there(folder): f"{aside}{folder}" for folder in new})
        self._sent |= {folder: relocation.there(folder) for folder in new}

    def _run_one(self, record: _Record, job: Job, said: queue.SimpleQueue[Callable[[], None]]) -> None:
        """In a separate thread."""
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
                ended = self._with_steps(record, job, command)
            except CannotMeasure as error:
                ended = BoardExit(detail=str(error), lost=isinstance(error, ConnectionLost))
        said.put(lambda: record.end(ended))

    def _with_steps(self, record: _Record, there: Job, command: BoardCommand) -> BoardExit:
        """The program on the board, its steps before and after it here."""
        here, apart = record.job, record.job.apart
        if apart is not None and apart.before:
            if (failed := self._step(record, apart.before)) is not None:
                return failed
            assert there.apart is not None
            self._board.push(dict(zip(there.apart.send, apart.send, strict=True)))
        ended = self._fetch(here, there, self._board.run(command, record, lambda: self._stops > 0))
        if apart is None or not apart.after or ended.exit_code != 0:
            return ended
        return self._step(record, apart.after) or ended

    def _step(self, record: _Record, script: str) -> BoardExit | None:
        job = record.job
        return run_here(script, job.cwd, job.timeout_s, record.stdout, lambda: self._stops > 0)

    def _fetch(self, here: Job, there: Job, ended: BoardExit) -> BoardExit:
        """Brings back what it wrote. A program that failed may have written nothing."""
        for path, source in zip(here.fetch, there.fetch, strict=True):
            try:
                self._board.pull(source, path)
            except CannotMeasure:
                if ended.exit_code == 0:
                    raise
        return ended

    def _folder_of(self, job: Job) -> str:
        """Its own, or the run's if that was not sent."""
        return job.cwd if job.cwd.startswith(self._board.folder) else self._board.folder


def _apart(job: Job) -> Job:
    """With its steps apart from its program, if it has any."""
    steps = job.apart
    return job if steps is None else msgspec.structs.replace(job, argv=steps.argv, shell=steps.shell, files=steps.files)


def _top_of(path: str, tops: Sequence[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


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
        self._log = JobLog(quiet, self._stream, MessageWriter(self._speaker_fd))
        self._began_ns = time.perf_counter_ns()
        self._has_started = False
        self._is_finished = False
        self.has_ended = False
        self.lost: BoardExit | None = None  # the board went away before it ended
        self.outcome = Outcome(job=job.id)

    # Called by the board.

    def started(self, pid: int) -> None:
        began_ns, wall = time.perf_counter_ns(), time.time()
        self._said.put(lambda: self._start(pid, began_ns, wall))

    def stdout(self, data: bytes) -> None:
        self._said.put(lambda: self._print(data))

    def stderr(self, data: bytes) -> None:
        self._said.put(lambda: self._print(data))

    def note(self, text: str) -> None:
        self._said.put(lambda: self._append("message", severity="warning", source="board", text=text))

    # In the main thread.

    def end(self, ended: BoardExit) -> None:
        """It ended, and its record is closed; unless the board was lost: it may yet run on another."""
        self.has_ended = True
        if ended.lost and not ended.stopped:
            self.lost = ended
        else:
            self.finish(ended)

    def forget(self) -> None:
        """As if it had never begun."""
        self._log.finish(lambda: False, succeeded=False)
        self._close()
        for path in (self.job.stream, self.job.log, f"{self.job.log}.gz"):
            with suppress(FileNotFoundError):
                os.unlink(path)

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
        if not self._is_finished:
            self._log.advance(time.perf_counter_ns())

    def finish(self, ended: BoardExit | None) -> None:
        """Closes the record, if that was not done."""
        if ended is None or self._is_finished:
            return
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
        if not ended.lost:  # else nobody saw its end, and a resumed run runs it again
            self._append("end", wall=time.time(), **how, cpu_s=None, max_rss_bytes=None)
        if not self._stream.flush(5.0) or self._stream.lost:
            self.outcome = msgspec.structs.replace(self.outcome, exit_code=None, detail=self._stream.trouble)
        self._close()
        self._listener.on_finished(self.outcome)

    def _close(self) -> None:
        self._stream.close()
        os.close(self._speaker_fd)
        self._is_finished = True

    def _append(self, event: str, **values: object) -> None:
        self._stream.append(event, t=time.perf_counter_ns(), **values)
