"""Builds a captured model, or a model file, for a runtime, into a folder. Imports numpy: not before the script has run."""

from __future__ import annotations

import errno
import os
from typing import Any, Dict, Mapping, Optional

from benchmodels.build.build_contents import Facts, write_entry
from benchmodels.check.reference import Reference, reference_of
from benchmodels.failures import has_room
from benchmodels.files.model_file import ModelFile, described, made_inputs, open_model_file, resolved_shapes
from benchmodels.measure.runtime_options import options_of, shown_batch, tell_failure
from benchmodels.measure.work import count_work
from benchmodels.reports import BuildSteps, Reports
from benchmodels.runtimes.base import Captured, Runtime
from benchmodels.settings import ModelSettings
from benchmodels.tensors import flatten_call


class Building:
    """One build. Its public methods raise nothing: a failure is told."""

    def __init__(self, settings: ModelSettings, runtime: Runtime, reports: Reports) -> None:
        self._settings = settings
        self._runtime = runtime
        self._reports = reports
        self._steps = BuildSteps(reports, runtime.versions())
        self._options = options_of(settings)

    def build(self, captured: Captured) -> None:
        try:
            self._build(captured)
        except BaseException as error:
            tell_failure(self._reports, error)

    def build_file(self, path: str) -> None:
        try:
            with self._reports.at("load"):
                opened: Any = open_model_file(path, self._settings.trust)
                arrays = inputs_of(opened, self._settings)
                told = described(opened, arrays, self._settings.identity)
            if hasattr(opened, "captured"):  # it holds a module of torch
                self._settings = self._settings._replace(varying=opened.varying())
                self._build(opened.captured(arrays, self._settings.identity), told)
            else:
                self._build_as_it_is(path, opened, arrays, told)
        except BaseException as error:
            tell_failure(self._reports, error)

    def _build(self, captured: Captured, told: Optional[Dict[str, Any]] = None) -> None:
        """The reference first: exporting may leave a model unfit to be called."""
        module, args, kwargs = captured.module, captured.args, captured.kwargs
        with self._steps.step("reference"):
            reference = reference_of(module, args, kwargs)
            batch = shown_batch(self._settings, captured)
        # Copies: what is exported may be called with its inputs.
        inputs = {name: tensor.detach().clone() for name, tensor in flatten_call(args, kwargs, captured.names)}
        with self._reports.at("export"):
            self._runtime.build(captured, self._settings.builds, self._options, self._steps)
        # Not before: what it imports would be missing from the time that the exporter needs for its own imports.
        work = count_work(module, args, kwargs, self._settings.precision, may_call=True)
        self._write(inputs, reference, Facts(batch, work, self._steps.done, captured.weights, told))

    def _build_as_it_is(self, path: str, opened: ModelFile, arrays: Dict[str, Any], told: Dict[str, Any]) -> None:
        with self._steps.step("reference"):
            reference = opened.reference(arrays)
            work = opened.work(arrays)
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        with self._reports.at("convert"):
            self._runtime.build_file(path, self._settings.builds, self._options, self._steps, shapes)
        self._write(arrays, reference, Facts(opened.batch(arrays), work, self._steps.done, None, told))

    def _write(self, inputs: Mapping[str, Any], reference: Reference, facts: Facts) -> None:
        with self._reports.at("convert"):
            if not has_room(self._settings.builds):  # what was built may have been cut short without a word
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._settings.builds)
            write_entry(self._settings.builds, inputs, reference, facts)


def inputs_of(opened: ModelFile, settings: ModelSettings) -> Dict[str, Any]:
    """Those saved with the file, if no shape was asked for; else made from the shapes."""
    saved = getattr(opened, "saved_inputs", None)
    if saved is not None and not settings.shapes:
        found = saved()
        if found is not None:
            return dict(found)
    shapes = resolved_shapes(opened.inputs, settings.shapes)
    return made_inputs(opened.inputs, shapes, settings.seed or 0)
