"""Failures of a measuring or building process, as reports."""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from typing import Iterator

from benchmodels.failures import UNAVAILABLE, failure_of
from benchmodels.reports import Reports
from benchmodels.runtimes.registry import UnknownRuntime


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
            traceback.print_exception(type(error), error, error.__traceback__)
