"""What the settings of a measuring or building process mean for a runtime, and where its events go."""

from __future__ import annotations

import os
from typing import Optional

from benchmodels.failures import failure_of
from benchmodels.measure.batch import Batch, of_independent_entries, of_layers
from benchmodels.reports import Reports, put
from benchmodels.runtimes.base import Captured, Options
from benchmodels.settings import ModelSettings


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


def told_batch(settings: ModelSettings) -> Optional[Batch]:
    """How many items a call has, where that was known before."""
    return None if settings.items is None else Batch(settings.items, settings.items_from or "as told")


def shown_batch(settings: ModelSettings, captured: Captured) -> Optional[Batch]:
    """The same, as the model itself shows it; it is called for that."""
    module, args, kwargs = captured.module, captured.args, captured.kwargs
    found = of_layers(module, args, kwargs)
    return found or of_independent_entries(module, args, kwargs, captured.names, settings.varying)
