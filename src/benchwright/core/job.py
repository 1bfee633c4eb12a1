"""A Job: one process to start on a node, with everything the agent needs to know."""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from benchwright.core.metric import MetricSpec

Reports = Literal["always", "perhaps", "never"]  # whether a process has to report what it measures
MAKES_DATA = "data"  # the phase of jobs that make what others read: prepare scripts

_ESCAPED = re.compile("(?:%[0-9A-F]{2})+")

SHELL_LINE = ("/bin/sh", "-c")  # before the line that a shell runs


def readable_job(job_id: str) -> str:
    """A job's name without the escapes that a file name needs."""
    name = _ESCAPED.sub(lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), job_id)
    return name if name.isprintable() else job_id


class JobBarrier(msgspec.Struct, frozen=True, kw_only=True):
    """Where the jobs of one launch meet after warm-up. Each then runs on until the last has been measured.

    `turn_s`: the jobs belong to launches that take turns of that length instead of running at the same time.
    """

    folder: str
    size: int
    rank: int
    turn_s: float | None = None


class LaunchEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a job learns that its launch was measured, where some of the launch's processes report nothing.

    `size`: the number of processes that report; once all were stopped early, the others have `grace_s` to end.
    """

    folder: str
    size: int
    place: int  # of the job in its launch
    reports: bool
    grace_s: float


class JobTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that start up while another is measured: each waits for its turn before it touches its device.

    Its turn is a lock on the file `turn` in the folder, so whoever has started up first is next. `place` tells their marks
    in the folder apart. During its turn it has `cores`; before and after it those of its job, which all share. While its
    loops run the others are held back.
    """

    folder: str
    place: int = 0
    cores: tuple[int, ...] | None = None  # None: those of its job


class JobBuild(msgspec.Struct, frozen=True, kw_only=True):
    """How to build what a job measures, in an earlier process: `probe` and `warm` in place of the job's."""

    probe: dict[str, Any]
    warm: tuple[str, ...] = ()


class BuiltAhead(msgspec.Struct, frozen=True, kw_only=True):
    """When the builds of this run began (seconds since 1970), and how many were made at a time."""

    since: float
    beside: int


class StepsApart(msgspec.Struct, frozen=True, kw_only=True):
    """How a job with steps runs on a board: what is measured there, the steps before and after it on this machine."""

    argv: tuple[str, ...]
    shell: bool = False
    files: dict[str, str] = {}  # path → text: written before it starts
    before: str = ""  # for /bin/sh; empty: no such step
    after: str = ""  # once what it wrote is back
    send: tuple[str, ...] = ()  # what the steps before it wrote and the program reads


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Paths are absolute on the node. `env` holds changes to the agent's environment; None removes."""

    id: str  # also the stem of its files: name[.R<n>][.D<gpu>|.<job>][.<node>], or with the tag of a benchfile's plan
    benchmark: str
    argv: tuple[str, ...]
    cwd: str
    stream: str  # events are appended here: <run>/<id>.data
    log: str  # stdout and stderr go here: <run>/<id>.log, compressed afterwards
    shell: bool = False
    env: dict[str, str | None] = {}
    devices: tuple[int, ...] = ()
    cores: tuple[int, ...] | None = None
    node: str = "localhost"
    machines: int = 1  # that the launch runs on
    reports: Reports = "always"  # never: another process of the launch reports for it; what it measures does not count
    phase: str = "run"  # or MAKES_DATA, or the name of a hook
    timeout_s: float | None = None
    check_timeout_s: float | None = None  # extra time once it has reported that it is measured and being checked
    grace_s: float = 5.0  # between TERM and KILL
    max_memory_bytes: int | None = None  # of all its processes together: beyond it is killed
    metrics: tuple[MetricSpec, ...] = ()
    probe: dict[str, Any] = {}  # benchprobe's configuration, without the stream
    probe_path: str | None = None  # the folder that holds benchprobe and nothing else
    barrier: JobBarrier | None = None
    launch_end: LaunchEnd | None = None  # None: every process of the launch reports, and ends by itself
    turn: JobTurn | None = None
    build: JobBuild | None = None  # None: nothing is built, or its own process does that
    built: BuiltAhead | None = None
    sample_interval_s: float = 0.5
    echo: bool = False  # forward the program's output to the listener
    discard_log: bool = False  # remove the log after success
    launch: int | None = None  # the number of the launch, from 0
    warmup: bool = False  # a warm-up launch: kept, marked, not counted
    block: int | None = None  # interleaved launches of the same block are compared as pairs
    position: int = 0  # place in the order of launches
    path: tuple[str, ...] = ()  # folders that go in front of $PATH
    files: dict[str, str] = {}  # path → text: written before it starts
    folders: tuple[str, ...] = ()  # made before it starts, where they can be
    recorded: tuple[str, ...] = ()  # variables to write down beside those that explain performance: names or globs
    unrecorded: tuple[str, ...] = ()  # variables of `env` that repeat the plan, and are not written down
    cooldown_s: float = 0.0  # to wait after the launch before
    wait_s: float = 0.0  # to wait before it is started
    printed: str | None = None  # lines of its log that contain this are copied to the stream; empty: all lines
    fetch: tuple[str, ...] = ()  # files it writes that are to be brought back, where the node shares no file system
    apart: StepsApart | None = None  # in place of argv, shell and files, on a board
    warm: tuple[str, ...] = ()  # modules that may be imported before the process is forked; empty: it is started afresh
    layout: int = 0  # of warm starts: those with another layout in memory are forked from another process
    dialect: str | None = None  # of the lines that it writes to $DATA_FD; None: it writes none
    data_file: str | None = None  # of those lines: opened for appending as descriptor 3, which $DATA_FD names


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a job's process ended, as the agent saw it. The recorder judges it."""

    job: str
    exit_code: int | None = None  # None: it never started, or a signal ended it
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = False  # benchwright was asked to stop
    out_of_memory: bool = False
    disk_full: bool = False  # it, or the record of it, failed for lack of disk space
    duration_s: float = 0.0
    detail: str | None = None  # what else the agent knows
