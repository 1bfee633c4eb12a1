"""What the settings of a measuring or building process mean for a runtime, and where its events go."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional

from benchprobe.models.failures import failure_of
from benchprobe.models.reports import Reports
from benchprobe.models.settings import ModelSettings
from benchprobe.models.stream import put
from benchprobe.models.tensors import flatten_call
from benchprobe.runtimes.base import Captured, Options


def options_of(settings: ModelSettings) -> Options:
    """With threads for every core that this process may use, unless told otherwise."""
    threads = settings.threads or _usable_cores()
    return Options(settings.device, settings.precision, threads, max(1, settings.streams))


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def reports_of_probe() -> Reports:
    """Through this process's probe."""
    return Reports(put)


def tell_failure(reports: Reports, error: BaseException) -> None:
    """What was raised, as the result it is; where it came from goes to the log."""
    import traceback

    failure = failure_of(error)
    reports.failure(failure.kind, failure.text, failure.stage, failure.operator)
    if failure.stage is None or error.__cause__ is not None:  # nobody has put it in words
        traceback.print_exception(type(error), error, error.__traceback__)


def items_of(captured: Captured) -> Optional[int]:
    """The first dimension, where all tensors among the inputs that have one agree: the same as when it was found."""
    if captured.signature is not None:
        found: Optional[int] = captured.signature.items
        return found
    return leading_size(dict(flatten_call(captured.args, captured.kwargs, captured.names)))


def leading_size(arrays: Mapping[str, Any]) -> Optional[int]:
    """Of tensors or arrays: the first dimension, where all that have one agree."""
    sizes = {int(array.shape[0]) for array in arrays.values() if len(array.shape)}
    return sizes.pop() if len(sizes) == 1 else None
