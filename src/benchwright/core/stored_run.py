"""Runs stored whole (in an exported file or in the store), validated when read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from benchwright.core.earlier_names import renamed_run
from benchwright.core.errors import InvalidInput
from benchwright.core.events import (
    BuildStepEvent,
    CheckEvent,
    FailureEvent,
    Finite,
    LoopStop,
    Moment,
    RuntimeEvent,
    Whole,
)
from benchwright.core.measurement import DELIVERED
from benchwright.core.metric import check_aggregate
from benchwright.core.run import Run
from benchwright.core.stored_file import Unreadable, short


class _Loop(msgspec.Struct, kw_only=True):
    name: str
    rank: Whole | None = None
    on_device: bool | None = None
    device_stride: Whole = 1
    steps: dict[str, Whole] = {}
    warmup: str | None = None
    stop: LoopStop | None = None


class _Reported(msgspec.Struct, kw_only=True):
    dialect: str = ""
    lines: Whole = 0
    early_stop: bool | None = None
    task: str | None = None
    gpu_memory_bytes: dict[str, Finite] | None = None
    wall: list[Finite | None] | None = None


class _Facts(msgspec.Struct, kw_only=True):
    """The facts of a launch that reports and checks read; there may be others."""

    started: bool | None = None
    python: dict[str, Any] | None = None
    loops: list[_Loop] | None = None
    measured_ns: tuple[Moment, Moment] | None = None
    ran_on_until_ns: Moment | msgspec.UnsetType = msgspec.UNSET
    reported: _Reported | None = None
    model: dict[str, Any] | None = None
    runtime: RuntimeEvent | None = None
    build: list[BuildStepEvent] | None = None
    check: CheckEvent | None = None
    failure: FailureEvent | None = None


def stored_run(value: object, *, strict: bool = True, finish: Callable[[Run], Run] = lambda run: run) -> Run:
    """The Run in a decoded JSON `value`; Unreadable if it is not one.

    `strict`: numbers must be numbers, not text. `finish` undoes what was done to the run before it was stored.
    """
    try:
        run = finish(msgspec.convert(renamed_run(value), Run, strict=strict))
        launches = [launch for result in run.results for launch in result.launches]
        for launch in launches:
            if launch.facts:
                msgspec.convert(launch.facts, _Facts)
        for method in {m.aggregate for launch in launches for m in launch.measurements} - {DELIVERED}:
            check_aggregate(method)
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except (msgspec.ValidationError, InvalidInput, ValueError, OverflowError) as error:
        raise Unreadable(short(error.what if isinstance(error, InvalidInput) else str(error))) from None
    return run
