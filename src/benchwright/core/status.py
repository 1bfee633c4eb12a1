"""How a launch, a benchmark and a run ended."""

from __future__ import annotations

from enum import Enum


class Status(str, Enum):
    """The outcome of a benchmark or of one of its launches."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"  # the machine lacks something, or it is not enabled: no failure
    INTERRUPTED = "interrupted"  # stopped from outside; a resume repeats it
    PENDING = "pending"  # planned, not yet measured


class Reason(str, Enum):
    """Why a launch did not end `ok`."""

    CRASHED = "crashed"  # ended with a code other than 0, or could not be started
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"  # failed for lack of disk space, or its record did; a resume repeats it
    SIGNALLED = "signalled"  # ended by a signal that was not ours
    TIMED_OUT = "timed_out"
    NO_DATA = "no_data"  # ended well, but a metric that was asked for never came
    INVALID = "invalid"  # NaN loss, a failed check, a number that cannot be true
    AGENT_LOST = "agent_lost"  # the agent died while it ran: nothing is known of its end
    PARTNER_FAILED = "partner_failed"  # ended well, but another job of its launch did not: measured under another load
    LACKS_DEVICES = "lacks_devices"
    LACKS_CAPABILITY = "lacks_capability"  # a condition of requires_capabilities does not hold here
    BUILD_FAILED = "build_failed"  # a model could not be exported, converted or compiled for its runtime
    NOT_MEASURABLE = "not_measurable"  # found, but nothing that could be measured: never called, in training
    NOT_READY = "not_ready"  # not installed, not prepared, or its data are gone
    MISCONFIGURED = "misconfigured"  # what describes it is wrong, so it was never started
    DISABLED = "disabled"
    STOPPED = "stopped"  # Ctrl-C or SIGTERM of benchwright
