"""A board that is reached by a shell: over ssh, or this machine. It needs sh, tar and a checksum program, and nothing else."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import IO, Self

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.executors.boards.base import (
    BoardCommand,
    BoardExit,
    BoardOutput,
    BoardProperties,
    Progress,
)
from benchwright.executors.transfer.depot import Depot, Tree
from benchwright.executors.transfer.manifest import read_manifest
from benchwright.executors.transfer.pull import pull
from benchwright.executors.transfer.shell import ANSWER, Shell, ask
from benchwright.executors.transfer.survey import Survey, survey

# The script that runs one program on a board: in a process group of its own, ended when our end of its stdin closes.
#
# It reports on stderr, in lines that begin with a record separator and a secret word, so that no program can be mistaken for it.


_SEPARATOR = b"\x1e"
_LONGEST_REPORT = 512
# The wall clock may be set while the program runs: the time since boot, though coarse, tells.
_CLOCKS = """\
now=$(date +%s%N 2>/dev/null)
case $now in
  *[!0-9]*|'') now() { echo 0; } ;;
  ???????????????????*) now() { date +%s%N; } ;;
  *) now() { echo 0; } ;;
esac
up() { if read -r seconds rest </proc/uptime; then echo "$seconds"; else date +%s; fi 2>/dev/null; }
"""

# A shell may have a command of its own by that name, which nothing but a shell can run.
_FIND = """\
find_program() {
  case $1 in */*) [ -x "$1" ]; return;; esac
  IFS=:
  for folder in $PATH; do [ -f "${folder:-.}/$1" ] && [ -x "${folder:-.}/$1" ] && return; done
  false
}
find_program"""


def program_script(command: BoardCommand, word: str, record: str, *, can_leave_session: bool) -> str:
    """The script, in POSIX sh. `word`: what its reports carry; the program and its children have it in their environment.
    `record`: a file there that says what runs."""
    lines = [
        f"report() {{ printf '\\036%s %s\\n' {word} \"$*\" >&2; }}",
        f"cd {shlex.quote(command.cwd)} 2>/dev/null || {{ report no-folder; exit 126; }}",
    ]
    for name, value in command.env.items():
        lines.append(f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}")
    lines.append(f"export BENCHWRIGHT_BOARD_JOB={word}")
    program = shlex.quote(command.argv[0])
    lines.append(f"( {_FIND} {program} ) || {{ report not-found; exit 127; }}")
    words = list(command.argv)
    if command.cores is not None:
        words = ["taskset", f"{sum(1 << core for core in command.cores):x}", *words]
    if can_leave_session:
        words = ["setsid", *words]
    group = "-$pid" if can_leave_session else "$pid"
    lines += [
        _CLOCKS.rstrip(),
        "exec 3<&0",
        "began=$(now) booted=$(up)",
        f"{shlex.join(words)} </dev/null 3<&- &",
        "pid=$!",
        f"echo $pid {word} $$ >{shlex.quote(record)}",
        "report started $pid",
        f"( cat <&3; kill -TERM {group}; sleep {max(1, round(command.grace_s))}; kill -KILL {group} ) >/dev/null 2>&1 &",
        "watch=$!",
        "{ wait $pid; } 2>/dev/null",  # some shells say what ended it
        "code=$? ended=$(now) later=$(up)",
        "kill $watch 2>/dev/null",
        f"kill -KILL {group} 2>/dev/null",
        f"rm -f {shlex.quote(record)}",
        'report ended $code $began "$ended" $booted "$later"',
        "exit 0",
        "",
    ]
    return "\n".join(lines)


class Ended(msgspec.Struct, frozen=True):
    """The report of a program's end."""

    code: int
    duration_s: float
    resolution_s: float

    @classmethod
    def read(cls, words: list[str]) -> Ended:
        code, began, ended, booted, later = words
        coarse_s = float(later) - float(booted)
        step_s = 0.01 if "." in booted else 1.0
        fine_s = (int(ended) - int(began)) / 1e9
        if int(began) and abs(fine_s - coarse_s) < max(0.1, 2 * step_s):
            return cls(int(code), fine_s, 1e-6)
        return cls(int(code), max(coarse_s, 0.0), step_s)


class ReportFilter:
    """Takes the reports out of a program's stderr: what remains is the program's own."""

    def __init__(self, word: str, output: Callable[[bytes], None]) -> None:
        self._mark = _SEPARATOR + word.encode() + b" "
        self._output = output
        self._held = b""
        self.reports: list[list[str]] = []

    def feed(self, data: bytes) -> None:
        data = self._held + data
        self._held = b""
        while data:
            before, separator, rest = data.partition(_SEPARATOR)
            if before:
                self._output(before)
            if not separator:
                return
            data = separator + rest
            begins = self._mark.startswith(data[: len(self._mark)])
            line, newline, after = data.partition(b"\n")
            if begins and (newline or len(data) < _LONGEST_REPORT):
                if not newline:
                    self._held = data  # the rest of a report is still to come
                    return
                self.reports.append(line[len(self._mark) :].decode(errors="replace").split())
                data = after
            else:
                self._output(_SEPARATOR)
                data = rest

    def finish(self) -> None:
        """Nothing more comes."""
        if self._held:
            self._output(self._held)
            self._held = b""


def new_word() -> str:
    """A word that no program can guess."""
    return os.urandom(16).hex()


_LOOK_S = 0.02
_PATIENCE_S = 15.0  # for a program to be ended there, beyond its grace
_SHELL_SIGNAL = 128  # a shell's exit code for a program that a signal ended, less the signal
_REMOVE = f"rm -rf \"$1\"; echo '{ANSWER}'"
# $1: the folder of all runs, $2: that of this one. Ends what a run left that is gone, if it carries the word of that run;
# names what still runs.
_OPEN = f"""\
echo '{ANSWER}'
for file in "$1"/*/job.*; do
  [ -f "$file" ] || continue
  read -r pid word script <"$file"
  grep -q "BENCHWRIGHT_BOARD_JOB=$word" "/proc/$pid/environ" 2>/dev/null || continue
  if kill -0 "$script" 2>/dev/null; then
    echo "busy $pid"
  else
    kill -KILL "-$pid" 2>/dev/null || kill -KILL "$pid"
    rm -f "$file"
  fi
done
mkdir -p "$2"
"""


class ShellBoard:
    """`folder`: where to put things there; None: below the user's home. `digests`: where sums of files here are kept."""

    def __init__(self, shell: Shell, folder: str | None = None, digests: str | None = None) -> None:
        self._shell = shell
        self._wanted = folder
        self._digests = digests
        self._found: Survey | None = None
        self._folder = ""

    @property
    def name(self) -> str:
        return str(self._shell)

    @property
    def folder(self) -> str:
        return self._folder

    def __enter__(self) -> Self:
        self._found = survey(self._shell, self._wanted)
        runs = f"{self._found.folder}/runs"
        self._folder = f"{runs}/{os.urandom(6).hex()}"
        for line in ask(self._shell, _OPEN, runs, self._folder, what="its folder was made").lines:
            raise CannotMeasure(
                f"{self.name}: another run is using it (process {line.split()[-1]} there); wait for it to end, or end it"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            ask(self._shell, _REMOVE, self._folder, limit_s=_PATIENCE_S, what="its folder was removed")
        except CannotMeasure:
            pass  # the next run there removes what is old

    def properties(self) -> BoardProperties:
        found = self._known()
        return BoardProperties(machine=found.machine, free_bytes=found.free_bytes, can_pin="taskset" in found.tools)

    def push(
        self, files: Mapping[str, str], progress: Progress | None = None, without: Collection[str] = ()
    ) -> tuple[str, ...]:
        trees = []
        for there, here in files.items():
            self._refuse_outside(there)
            trees.append(Tree(read_manifest(here, self._digests, excluded=without), there))
        return self._depot().push(trees, progress).notes

    def _depot(self) -> Depot:
        """A subclass may send files in its own way."""
        return Depot(self._shell, self._known())

    def run(self, command: BoardCommand, output: BoardOutput, stopped: Callable[[], bool]) -> BoardExit:
        if command.cores is not None and "taskset" not in self._known().tools:
            return BoardExit(detail=f"{self.name} has no taskset, so nothing can be pinned there; leave the cores out")
        return self._running(command, output).follow(stopped)

    def _running(self, command: BoardCommand, output: BoardOutput) -> _Running:
        word = new_word()
        can_leave = "setsid" in self._known().tools
        script = program_script(command, word, f"{self._folder}/job.{word[:8]}", can_leave_session=can_leave)
        return _Running(self._shell, command, output, word, script)

    def pull(self, there: str, here: str) -> None:
        pull(self._shell, there, here)

    def remove(self, there: str) -> None:
        self._refuse_outside(there)
        ask(self._shell, _REMOVE, there, what="a file was removed")

    def _known(self) -> Survey:
        assert self._found is not None, "the board is not open"
        return self._found

    def _refuse_outside(self, there: str) -> None:
        if not os.path.normpath(there).startswith(self._folder + "/"):
            raise CannotMeasure(f"{self.name}: {there} is not below {self._folder}, the folder of this run")


class _Running:
    """One program on the board, from its start to its end."""

    def __init__(self, shell: Shell, command: BoardCommand, output: BoardOutput, word: str, script: str) -> None:
        self._shell = shell
        self._command = command
        self._output = output
        self._script = script
        self._filter = ReportFilter(word, self._take_stderr)
        self._said = b""  # the last of stderr, which explains a lost connection
        self._began: float | None = None

    def follow(self, stopped: Callable[[], bool]) -> BoardExit:
        words = self._shell.words(["sh", "-s"])
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except OSError as error:
            return BoardExit(detail=f"{words[0]} could not be started: {error.strerror}; install {words[0]}")
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            _reader(process.stdout, self._output.stdout),
            _reader(process.stderr, self._feed),
        ]
        try:
            process.stdin.write(os.fsencode(self._script))
            process.stdin.flush()
        except BrokenPipeError:
            pass  # how it ended is known below
        timed_out, was_stopped = self._wait(process, stopped)
        for reader in readers:
            reader.join(_PATIENCE_S)
        self._filter.finish()
        return self._exit(process.returncode, timed_out=timed_out, stopped=was_stopped)

    def _feed(self, data: bytes) -> None:
        self._filter.feed(data)
        if self._began is None and (started := self._report("started")):
            self._began = time.monotonic()
            self._output.started(int(started[0]))

    def _take_stderr(self, data: bytes) -> None:
        self._said = (self._said + data)[-4096:]
        self._output.stderr(data)

    def _report(self, what: str) -> list[str] | None:
        return next((words[1:] for words in self._filter.reports if words[:1] == [what]), None)

    def _wait(self, process: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> tuple[bool, bool]:
        """Until it has ended; returns whether that was for lack of time, or because it was asked for."""
        timed_out = was_stopped = False
        give_up: float | None = None
        while process.poll() is None:
            now = time.monotonic()
            limit_s = self._command.timeout_s
            late = self._began is not None and limit_s is not None and now - self._began > limit_s
            if give_up is None and (late or stopped()):
                timed_out, was_stopped = late, not late
                _close(process.stdin)  # the script there then ends the program
                give_up = now + self._command.grace_s + _PATIENCE_S
            elif give_up is not None and now > give_up:
                process.kill()
                process.wait()
                break
            time.sleep(_LOOK_S)
        _close(process.stdin)
        return timed_out, was_stopped

    def _exit(self, code: int, *, timed_out: bool, stopped: bool) -> BoardExit:
        if self._report("no-folder") is not None:
            return BoardExit(detail=f"{self._shell}: the folder {self._command.cwd} cannot be entered")
        if self._report("not-found") is not None:
            program = self._command.argv[0]
            return BoardExit(
                detail=f"{self._shell}: command '{program}' was not found there; check its spelling or give its path"
            )
        report = self._report("ended")
        if report is None:
            said = self._said.decode(errors="replace")
            why = self._shell.explain(self._shell.ended(code), said if self._began is None else "")
            when = " while it ran" if self._began is not None else ""
            lost = f"the connection to {self._shell} was lost{when}: {why}"
            duration_s = time.monotonic() - self._began if self._began is not None else 0.0
            return BoardExit(lost=True, timed_out=timed_out, stopped=stopped, detail=lost, duration_s=duration_s)
        ended = Ended.read(report)
        by_signal = ended.code > _SHELL_SIGNAL
        return BoardExit(
            exit_code=None if by_signal else ended.code,
            signal=ended.code - _SHELL_SIGNAL if by_signal else None,
            timed_out=timed_out,
            stopped=stopped,
            duration_s=ended.duration_s,
            resolution_s=ended.resolution_s,
        )


def _reader(stream: IO[bytes], take: Callable[[bytes], None]) -> threading.Thread:
    def read() -> None:
        while data := os.read(stream.fileno(), 1 << 16):
            take(data)
        stream.close()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        try:
            stream.close()
        except OSError:
            pass  # the other end is gone already
