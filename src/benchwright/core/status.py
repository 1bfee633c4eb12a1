"""How a launch, a benchmark and a run ended."""

from __future__ import annotations

from enum import Enum


class Status(str, Enum):
    """The outcome of a benchmark or of one of its launches."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"  # the machine lacks something, or it is disabled: not a failure
    INTERRUPTED = "interrupted"  # stopped from outside; resuming repeats it
    PENDING = "pending"  # planned, not yet measured


class Reason(str, Enum):
    """Why a launch did not end `ok`."""

    CRASHED = "crashed"  # non-zero exit code, or could not be started
    OUT_OF_MEMORY = "out_of_memory"
    DISK_FULL = "disk_full"  # it or its record ran out of disk space; resuming repeats it
    SIGNALLED = "signalled"  # ended by a signal we did not send
    TIMED_OUT = "timed_out"
    NO_DATA = "no_data"  # succeeded, but a requested metric never appeared
    INVALID = "invalid"  # NaN loss, a failed check, an impossible number
    AGENT_LOST = "agent_lost"  # the agent died meanwhile: how it ended is unknown
    PARTNER_FAILED = "partner_failed"  # succeeded, but another job of its launch did not: the load was different
    LACKS_DEVICES = "lacks_devices"
    LACKS_CAPABILITY = "lacks_capability"  # a condition of requires_capabilities does not hold here
    BUILD_FAILED = "build_failed"  # a model could not be exported, converted or compiled for its runtime
    NOT_MEASURABLE = "not_measurable"  # found, but cannot be measured: never called, or in training
    NOT_READY = "not_ready"  # not installed, not prepared, or its data is gone
    MISCONFIGURED = "misconfigured"  # its description is wrong, so it was never started
    DISABLED = "disabled"
    STOPPED = "stopped"  # Ctrl-C or SIGTERM of benchwright

    @property
    def words(self) -> str:
        """`out of memory`."""
        return self.value.replace("_", " ")
