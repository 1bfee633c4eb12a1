"""Mode "measure": one model on one runtime, in this process.

A runtime of kind "module" is given the model in the middle of its script, which then goes no further. For one of kind
"artifact" a child builds it, unless it was built before; this process never sees the script.
"""

from __future__ import annotations

import os
from time import perf_counter_ns
from typing import Any, Callable, Sequence

from benchmodels.ending import leave
from benchmodels.failures import UNAVAILABLE, UNSUPPORTED
from benchmodels.measure.runtime_options import options_of, reports_of_probe, tell_failure
from benchmodels.reports import Reports
from benchmodels.runtimes.base import MODULE, Captured, Options, Runtime, Unsupported
from benchmodels.runtimes.registry import UnknownRuntime, runtime_named
from benchmodels.settings import ModelSettings

SUFFIXES = (".onnx", ".pt2", ".xml")
ANY_RUNTIME = ".pt2"  # such a file holds a module of torch, from which every runtime can build


def measure(settings: ModelSettings, script: str, args: Sequence[str]) -> int:
    """Reports what is impossible as a failure, with exit code 0. Does not return if the script reaches its model."""
    reports, options = reports_of_probe(), options_of(settings)
    try:
        runtime = runtime_named(settings.runtime)
        _refuse(runtime, settings)
        if runtime.kind != MODULE or settings.file:
            _refuse_without(runtime, options)
    except (UnknownRuntime, Unsupported) as error:
        _tell(reports, error)
        return 0
    if runtime.kind == MODULE and not settings.file:
        return _measure_in_script(settings, script, args, runtime, reports)
    _guarded(reports, lambda: _measure_elsewhere(settings, script, args, runtime, reports))
    leave(0)


def _measure_in_script(
    settings: ModelSettings, script: str, args: Sequence[str], runtime: Runtime, reports: Reports
) -> int:
    from benchmodels.discover.capture import run_until_call

    began_ns = perf_counter_ns()
    options = options_of(settings)

    def then(captured: Captured) -> Any:
        reports.measured("time.script", [(perf_counter_ns() - began_ns) / 1e9])
        _guarded(reports, lambda: measure_captured(captured))
        leave(0)

    def measure_captured(captured: Captured) -> None:
        from benchmodels.measure.jobs import MeasureJob

        _refuse_without(runtime, options)  # not before: it may import torch, which is the script's to do
        MeasureJob(settings, runtime, options, reports).measure_module(captured)

    reports.stage = "script"
    return run_until_call(settings, script, list(args), then)


def _measure_elsewhere(
    settings: ModelSettings, script: str, args: Sequence[str], runtime: Runtime, reports: Reports
) -> None:
    from benchmodels.measure.jobs import MeasureJob

    job = MeasureJob(settings, runtime, options_of(settings), reports)
    if runtime.kind == MODULE:
        job.measure_exported()
    else:
        job.measure_artifact(script, list(args))


def _guarded(reports: Reports, action: Callable[[], None]) -> None:
    """Reports any exception as a failure."""
    try:
        action()
    except BaseException as error:
        _tell(reports, error)


def _tell(reports: Reports, error: BaseException) -> None:
    if isinstance(error, UnknownRuntime):
        reports.failure(UNAVAILABLE, str(error), "load")
    else:
        tell_failure(reports, error)


def _refuse_without(runtime: Runtime, options: Options) -> None:
    reason = runtime.unavailable(options)
    if reason is not None:
        raise Unsupported("load", reason, kind=UNAVAILABLE)


def _refuse(runtime: Runtime, settings: ModelSettings) -> None:
    """Unsupported if the runtime cannot do what is asked."""
    if settings.precision not in runtime.precisions:
        text = f"{runtime.name} does not support {settings.precision}; it supports {', '.join(runtime.precisions)}"
        raise Unsupported("load", text, kind=UNSUPPORTED)
    suffix = os.path.splitext(settings.file or "")[1].lower()
    if settings.file and suffix not in SUFFIXES:
        raise Unsupported("load", f"{settings.file} is not a model file; supported: {', '.join(SUFFIXES)}")
    if settings.file and suffix != ANY_RUNTIME and suffix not in runtime.accepts:
        raise Unsupported("load", f"{runtime.name} does not take {suffix} files", kind=UNAVAILABLE)
