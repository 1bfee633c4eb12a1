"""Slurm's own programs: submitting a holder of nodes, asking about it, letting it go. Accounting (sacct) is not needed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress

import msgspec

from benchwright.core.errors import CannotMeasure

ASK_S = 30.0  # between questions to the controller, which serves a whole cluster
_FIRST_ASK_S = 4.0  # batch jobs are scheduled within 3 s of their submission, unless configured otherwise
_LIMIT_S = 60.0
# For what may remain unknown: how long an answer may take, and how much later to ask again.
_QUICK_S, _PATIENCE = 10.0, 10
_PROGRAMS = ("sbatch", "squeue", "srun", "scancel", "scontrol")
_DEFAULT_TIME = "4:00:00"
JOB_NAME = "benchwright"
# Holds the nodes while agents, which are steps, run on them; only the time limit ends it where compute nodes lack squeue.
_HOLDER = """\
#!/bin/sh
# benchwright holds these nodes, and releases them a minute after the last of its agents has ended.
(echo "$SLURM_JOB_NODELIST" >"$BENCHWRIGHT_SIGN") 2>/dev/null
idle=0
while [ "$idle" -lt 3 ]; do
  sleep {pause_s:g} || exit
  steps=$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i) || continue
  idle=$((idle + 1))
  for step in $steps; do
    case $step in *.batch | *.extern | *.interactive) ;; *) idle=0 ;; esac
  done
done
"""
# States of a job that has nodes, and of one that may get some. In all others it has ended.
_HAS_NODES = "RUNNING"
_ON_NODES = (_HAS_NODES, "SUSPENDED", "COMPLETING")
_ROW = "%A|%T|%r|%N"
_WAITS = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SUSPENDED", "STOPPED")
# Reasons for which a job waits for ever.
_HOPELESS = re.compile(
    "PartitionTimeLimit|PartitionNodeLimit|BadConstraints|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed"
)


class JobState(msgspec.Struct, frozen=True):
    """The state of a job in squeue. `reason`: why it waits, or how it ended. `nodes`: as a list expression, n[1-2]."""

    state: str
    reason: str = ""
    nodes: str = ""

    @property
    def has_nodes(self) -> bool:
        return self.state == _HAS_NODES

    @property
    def waits(self) -> bool:
        return self.state in _WAITS

    @property
    def is_hopeless(self) -> bool:
        return self.waits and _HOPELESS.search(self.reason) is not None


def check_programs() -> None:
    """CannotMeasure unless Slurm's programs are installed here."""
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        raise CannotMeasure(
            f"{', '.join(missing)}: not found; run benchwright where Slurm's commands are, such as a login node"
        )


def submit(nodes: int, partition: str, more: Sequence[str], name: str, sign: str) -> str:
    """Submits a holder and returns its job's number. `sign`: a file that the holder writes, if it can: see `JobWatch`."""
    has_time = any(re.match(r"-t|--time\b", word) for word in more) or "SBATCH_TIMELIMIT" in os.environ
    words = ["sbatch", "--exclusive", "--mem=0", f"--nodes={nodes}", "--ntasks-per-node=1"]
    words += [] if has_time else [f"--time={_DEFAULT_TIME}"]
    words += [f"--partition={partition}"] if partition else []
    words += [*more, "--no-requeue", "--no-kill", "--parsable", f"--job-name={name}"]
    words += ["--output=/dev/null", "--chdir=/", "--export=ALL"]
    done = _run(words, text=_HOLDER.format(pause_s=ASK_S), environment={"BENCHWRIGHT_SIGN": sign})
    if done.returncode != 0:
        raise CannotMeasure(f"sbatch refused: {_last_line(done)}; correct --nodes or --slurm")
    number = done.stdout.strip().split(";")[0]
    if not number.isdigit():
        raise CannotMeasure(f"sbatch printed '{number[:80]}' instead of the number of a job")
    return number


def cancel(number: str, name: str) -> str | None:
    """Ends a job, if it is the one of that name; returns what went wrong."""
    try:
        done = _run(["scancel", f"--name={name}", number])
    except CannotMeasure as error:
        return str(error)
    return None if done.returncode == 0 or "Invalid job id" in done.stderr else _last_line(done)


def hostnames(nodes: str) -> list[str]:
    """`n[1-2]` as names."""
    done = _run(["scontrol", "show", "hostnames", nodes])
    if done.returncode != 0 or not done.stdout.split():
        raise CannotMeasure(f"scontrol show hostnames {nodes}: {_last_line(done)}")
    return done.stdout.split()


def count_nodes(partition: str) -> int:
    """The nodes of a partition, or of the default one, that are up."""
    words = ["sinfo", "--noheader", "--responding", "--states=idle,mixed,allocated,completing", "--format=%P|%D"]
    done = _run([*words, *([f"--partition={partition}"] if partition else [])])
    rows = [line.partition("|") for line in done.stdout.split()]
    found = sum(int(count) for name, _, count in rows if count.isdigit() and (partition or name.endswith("*")))
    if not found:
        raise CannotMeasure(f"sinfo shows no nodes that are up ({_last_line(done)}); say how many with --nodes")
    return found


def count_nodes_of_job(number: str) -> int:
    """How many nodes it has, or waits for; 1 if that is not known: who needs them says why."""
    words = _run(["squeue", "--noheader", f"--jobs={number}", "--format=%D"]).stdout.split()
    return int(words[0]) if words and words[0].isdigit() else 1


class Neighbours:
    """Jobs of others on nodes of ours, by node, as squeue saw them half a minute ago at most. `seen`: what it has just said."""

    def __init__(self, own: Container[str], nodes: Sequence[str], ask_at: float, seen: str = "") -> None:
        self._own, self._nodes, self._ask_at = own, nodes, ask_at
        self._known = self._read(seen)

    def look(self) -> dict[str, tuple[str, ...]]:
        now = time.monotonic()
        if now < self._ask_at:
            return self._known
        self._ask_at = now + _PATIENCE * ASK_S  # unless it answers: launches wait for it
        words = ["squeue", "--noheader", f"--format={_ROW}", f"--nodelist={','.join(self._nodes)}"]
        with suppress(CannotMeasure):
            done = _run(words, limit_s=_QUICK_S)
            if done.returncode == 0:
                self._known, self._ask_at = self._read(done.stdout), now + ASK_S
        return self._known

    def _read(self, printed: str) -> dict[str, tuple[str, ...]]:
        rows = _rows(printed)
        others = [(job, nodes) for job, state, _, nodes in rows if job not in self._own and state in _ON_NODES]
        found = {node: tuple(job for job, nodes in others if _holds(nodes, node)) for node in self._nodes}
        return {node: jobs for node, jobs in found.items() if jobs}


def _rows(printed: str) -> list[list[str]]:
    """Number, state, reason and nodes of jobs, as `_ROW` has them."""
    rows = [line.strip().split("|", 3) for line in printed.splitlines()]
    return [row for row in rows if len(row) == 4 and row[0].isdigit() and row[1].isupper()]


def _holds(nodes: str, node: str) -> bool:
    """Whether a list expression, `a[1-2],b`, holds a node."""
    parts = re.split(r",(?![^\[]*\])", nodes)
    if not any(node.startswith(part.partition("[")[0]) for part in parts):
        return False
    return node in (hostnames(nodes) if "[" in nodes else parts)


class JobWatch:
    """Follows jobs. `signs`: their numbers, each with the file to which a new holder writes its nodes, on a file system that is
    shared. squeue is asked about jobs that wrote none, all in one question, at most once in half a minute. `at_once`: they are
    not ours, and it is asked now, about everybody's."""

    def __init__(self, signs: Mapping[str, str], *, at_once: bool = False) -> None:
        self._signs = dict(signs)
        self._at_once = at_once
        self._ask_at = time.monotonic() + (0.0 if at_once else _FIRST_ASK_S)
        self.seen = ""  # the last answer of squeue
        self.may_ask_at = time.monotonic()  # whoever wants to know more of the controller

    def forget(self, number: str) -> None:
        """Nothing more need be known about it."""
        self._signs.pop(number, None)

    def look(self) -> dict[str, JobState]:
        """Changes, by the number of the job."""
        found = {}
        for number, sign in self._signs.items():
            if sign and (nodes := _whole_line(sign)):
                os.unlink(sign)
                found[number] = JobState(_HAS_NODES, nodes=nodes)
        unknown = [number for number in self._signs if number not in found]
        if unknown and time.monotonic() >= self._ask_at:
            self._ask_at = self.may_ask_at = time.monotonic() + ASK_S
            found |= self._asked(unknown)
        return found

    def _asked(self, numbers: Sequence[str]) -> dict[str, JobState]:
        """States that squeue knows of these jobs; nothing, if it does not answer."""
        which = [] if self._at_once else [f"--jobs={','.join(numbers)}"]
        try:
            done = _run(
                ["squeue", "--noheader", *which, "--states=all", f"--format={_ROW}"], limit_s=max(ASK_S - 5.0, 5.0)
            )
        except CannotMeasure:
            return {}  # a slow controller answers later
        if done.returncode != 0 and "Invalid job id" not in done.stderr:
            return {}
        rows = _rows(done.stdout)
        if len(rows) < sum(bool(line.strip()) for line in done.stdout.splitlines()):
            return {}
        self.seen = done.stdout
        known = {number: JobState(*state) for number, *state in rows}
        return {number: known.get(number, JobState("GONE")) for number in numbers}


def _whole_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return ""
    return text.strip() if text.endswith("\n") else ""


def _run(
    words: list[str], *, text: str = "", environment: dict[str, str] | None = None, limit_s: float = _LIMIT_S
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            input=text,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
            start_new_session=True,  # Ctrl-C reaches only the main process
        )
    except subprocess.TimeoutExpired as error:
        raise CannotMeasure(f"{words[0]} did not end within {limit_s:g} s; is the controller overloaded?") from error
    except OSError as error:
        raise CannotMeasure(f"{words[0]} could not be started: {error.strerror}") from error


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1].removeprefix(f"{done.args[0]}: error: ") if lines else f"exit code {done.returncode}"
