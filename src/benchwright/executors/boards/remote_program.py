"""The script that runs one program on a board: in a process group of its own, ended when our end of its stdin closes.

It reports on stderr, in lines that begin with a record separator and a secret word, so that no program can be mistaken for it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable

import msgspec

from benchwright.executors.boards.base import BoardCommand

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
