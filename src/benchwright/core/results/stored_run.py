"""Runs that were stored whole (in an exported file, in the store), read without trust."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from benchwright.core.errors import InvalidInput
from benchwright.core.events.types import (
    BuildStepEvent,
    CheckEvent,
    FailureEvent,
    Finite,
    Moment,
    RuntimeEvent,
    StopDetail,
    Whole,
)
from benchwright.core.files.earlier_names import renamed_run
from benchwright.core.files.stored_file import Unreadable, short
from benchwright.core.measurement import Measurement
from benchwright.core.metric import check_aggregate
from benchwright.core.run import Run

_DELIVERED = "delivered"  # of a rate whose one number is stored beside its samples


class _LoopStop(msgspec.Struct, kw_only=True):
    rule: str | None = None
    steps: Whole | None = None
    by: str | None = None
    detail: StopDetail | None = None
    turn_s: Finite | None = None
    turns: Whole | None = None
    paused_ns: Moment | None = None


class _Loop(msgspec.Struct, kw_only=True):
    name: str
    rank: Whole | None = None
    on_device: bool | None = None
    steps: dict[str, Whole] = {}
    warmup: str | None = None
    stop: _LoopStop | None = None


class _Voir(msgspec.Struct, kw_only=True):
    lines: Whole = 0
    early_stop: bool | None = None
    task: str | None = None
    gpu_memory_bytes: dict[str, Finite] | None = None
    wall: list[Finite | None] | None = None


class _Facts(msgspec.Struct, kw_only=True):
    """What reports and checks read of a launch's facts; others may be there."""

    started: bool | None = None
    python: dict[str, Any] | None = None
    loops: list[_Loop] | None = None
    measured_ns: tuple[Moment, Moment] | None = None
    ran_on_until_ns: Moment | msgspec.UnsetType = msgspec.UNSET
    voir: _Voir | None = None
    milabench: dict[str, Any] | None = None
    model: dict[str, Any] | None = None
    runtime: RuntimeEvent | None = None
    build: list[BuildStepEvent] | None = None
    check: CheckEvent | None = None
    failure: FailureEvent | None = None


def stored_run(value: object, *, strict: bool = True, finish: Callable[[Run], Run] = lambda run: run) -> Run:
    """`value`, as JSON gives it, as a Run; Unreadable if it is none.

    `strict`: numbers are numbers, not text. `finish` undoes what was done to the run before it was stored.
    """
    try:
        run = finish(msgspec.convert(renamed_run(value), Run, strict=strict))
        for result in run.results:
            for launch in result.launches:
                msgspec.convert(launch.facts, _Facts)
                for measurement in launch.measurements:
                    _check_aggregate(measurement)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (msgspec.ValidationError, InvalidInput, ValueError, OverflowError) as error:
        raise Unreadable(short(error.what if isinstance(error, InvalidInput) else str(error))) from None
    return run


def _check_aggregate(measurement: Measurement) -> None:
    if measurement.aggregate != _DELIVERED:
        check_aggregate(measurement.aggregate)
