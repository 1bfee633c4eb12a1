"""The settings of a measuring or building process as options of a runtime, and its failures as reports."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator, Optional

from benchmodels.failures import UNAVAILABLE, failure_of
from benchmodels.measure.batch import Batch, of_independent_entries, of_layers
from benchmodels.reports import Reports
from benchmodels.runtimes.base import Captured, RuntimeOptions
from benchmodels.runtimes.registry import UnknownRuntime
from benchmodels.settings import ModelSettings


def options_of(settings: ModelSettings) -> RuntimeOptions:
    """Threads default to the number of cores this process may use."""
    threads = settings.threads or _usable_cores()
    told = (settings.onnx_opset, settings.sequence)
    return RuntimeOptions(settings.device, settings.precision, threads, max(1, settings.streams), *told)


def _usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


@contextmanager
def failures_reported(reports: Reports) -> Iterator[None]:
    """Reports any exception as a failure; its traceback goes to the log unless its text explains it."""
    try:
        yield
    except UnknownRuntime as error:
        reports.failure(UNAVAILABLE, str(error), "load")
    except BaseException as error:
        failure = failure_of(error)
        reports.failure(failure.kind, failure.text, failure.stage, failure.operator)
        if failure.stage is None or error.__cause__ is not None:
            import traceback

            traceback.print_exception(type(error), error, error.__traceback__)


def told_batch(settings: ModelSettings) -> Optional[Batch]:
    """Items per call, if already known."""
    return None if settings.items is None else Batch(settings.items, settings.items_from or "as given")


def shown_batch(settings: ModelSettings, captured: Captured) -> Optional[Batch]:
    """Items per call, found by calling the model."""
    module, args, kwargs = captured.module, captured.args, captured.kwargs
    found = of_layers(module, args, kwargs)
    return found or of_independent_entries(module, args, kwargs, captured.names, settings.varying)
