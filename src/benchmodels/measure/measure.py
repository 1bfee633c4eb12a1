"""Mode "measure": one model on one runtime, in this process.

A runtime of kind "module" gets the model in the middle of its script, which then stops. For one of kind "artifact" a child
process builds the model, unless a build is cached; this process does not run the script.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter_ns
from typing import Any, Sequence

from benchmodels.discover.capture import run_until_call
from benchmodels.failures import UNAVAILABLE, UNSUPPORTED
from benchmodels.files.file_content import SUFFIXES
from benchmodels.measure.failure_reports import failures_reported
from benchmodels.process_exit import end_compile_workers, leave
from benchmodels.reports import Reports
from benchmodels.runtimes.base import MODULE, Captured, Runtime, RuntimeOptions, Unsupported, is_importable
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import AHEAD, EXPORTED, ModelSettings

ANY_RUNTIME = ".pt2"  # such a file holds a module of torch, from which every runtime can build


def measure(settings: ModelSettings, script: str, args: Sequence[str]) -> int:
    """An impossible request is reported as a failure, with exit code 0. Does not return if the script reaches its model."""
    reports = Reports()
    with failures_reported(reports):
        runtime = runtime_named(settings.runtime)
        if settings.stops_after == AHEAD and runtime.kind == MODULE:
            return 0  # nothing to build: of a runtime from outside, that is known only here
        refuse(runtime, settings)
        if settings.stops_after != EXPORTED and (runtime.kind != MODULE or settings.file or settings.zoo):
            refuse_without(runtime, settings.options)
    if reports.failed:
        return 0
    if runtime.kind == MODULE and not settings.file and not settings.zoo:
        return _measure_in_script(settings, script, args, runtime, reports)
    with failures_reported(reports):
        _measure_elsewhere(settings, script, args, runtime, reports)
    end_compile_workers()
    leave(0)


def _measure_in_script(
    settings: ModelSettings, script: str, args: Sequence[str], runtime: Runtime, reports: Reports
) -> int:
    began_ns = perf_counter_ns()

    def then(captured: Captured) -> Any:
        labels = {"start": "warm"} if "benchmodels.warm.pages" in sys.modules else {}  # without the import of torch
        reports.measured("time.script", [(perf_counter_ns() - began_ns) / 1e9], labels=labels)
        with failures_reported(reports):
            refuse_without(runtime, settings.options)  # not earlier: it may import torch before the script does
            from benchmodels.measure.jobs import MeasureJob

            MeasureJob(settings, runtime, reports).measure_module(captured)
        end_compile_workers()
        leave(0)

    reports.stage = "script"
    return run_until_call(settings, script, list(args), then)


def _measure_elsewhere(
    settings: ModelSettings, script: str, args: Sequence[str], runtime: Runtime, reports: Reports
) -> None:
    from benchmodels.measure.jobs import MeasureJob

    job = MeasureJob(settings, runtime, reports)
    if runtime.kind == MODULE:
        job.measure_zoo() if settings.zoo else job.measure_exported()
    elif settings.stops_after:
        job.build_artifact(script, list(args))
    else:
        job.measure_artifact(script, list(args))


def refuse_without(runtime: Runtime, options: RuntimeOptions) -> None:
    reason = runtime.unavailable(options)
    if reason is None and not is_importable("numpy"):  # what the outputs are checked with
        reason = f"numpy not installed: {sys.executable} -m pip install numpy"
    if reason is not None:
        raise Unsupported("load", reason, kind=UNAVAILABLE)


def refuse(runtime: Runtime, settings: ModelSettings) -> None:
    """Unsupported if the runtime does not support the request."""
    if settings.options.precision not in runtime.precisions:
        text = (
            f"{runtime.name} does not support {settings.options.precision}; it supports {', '.join(runtime.precisions)}"
        )
        raise Unsupported("load", text, kind=UNSUPPORTED)
    if settings.stops_after and runtime.kind == MODULE:
        raise Unsupported("load", f"{runtime.name} runs the module itself and builds nothing", kind=UNAVAILABLE)
    suffix = os.path.splitext(settings.file or "")[1].lower()
    if settings.file and suffix not in SUFFIXES:
        raise Unsupported("load", f"{settings.file} is not a model file; supported: {', '.join(SUFFIXES)}")
    if settings.file and suffix != ANY_RUNTIME and suffix not in runtime.accepts:
        raise Unsupported("load", f"{runtime.name} does not take {suffix} files", kind=UNAVAILABLE)
