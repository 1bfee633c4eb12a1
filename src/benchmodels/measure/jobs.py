"""Four sources of a model to measure: a call in a script, a build, a file of torch.export, a zoo.

Import it only after the script's own imports: it imports numpy.
"""

from __future__ import annotations

import glob
import os
import tempfile
from contextlib import nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, ContextManager, List, Optional, Sequence

from benchmodels import zoo
from benchmodels.build.builder import (
    FORMAT,
    NOT_OF_THE_BUILD,
    build_seconds,
    inputs_of,
    read_facts,
    read_inputs,
    read_reference,
)
from benchmodels.build.cache import ALWAYS, IF_NEEDED, BuildCache, CachedBuild, Make
from benchmodels.build.labels import keep_labels
from benchmodels.build.process import build_in_child, built_before
from benchmodels.build.references import kept_reference
from benchmodels.build.sequence_file import key_of_sequence, name_of_sequence
from benchmodels.check.reference import Reference, reference_of
from benchmodels.files.file_content import digest_of, files_of
from benchmodels.files.loader import open_model_file
from benchmodels.files.model_file import described
from benchmodels.measure.batch import shown_batch, stated_batch
from benchmodels.measure.generation import ONLY_IN_TORCH, is_generation, with_results_read
from benchmodels.measure.model_measurement import ModelMeasurement, Subject
from benchmodels.measure.work import count_work
from benchmodels.reports import Reports
from benchmodels.runtimes.base import (
    FP32,
    ArtifactFolder,
    Captured,
    Runtime,
    Unsupported,
    module_versions,
)
from benchmodels.runtimes.parts.artifact import FILE as ARTIFACT_FILE
from benchmodels.runtimes.parts.artifact import read_artifact
from benchmodels.runtimes.parts.torch_modules import in_autocast
from benchmodels.settings import BUILT_NOW, ModelSettings
from benchmodels.types import Details
from benchprobe.config import from_environment


class MeasureJob:
    """One model on one runtime. An exception is a failure of `reports.stage`."""

    def __init__(self, settings: ModelSettings, runtime: Runtime, reports: Reports) -> None:
        config = from_environment()
        self._settings = settings
        self._runtime = runtime
        self._options = settings.options
        self._reports = reports
        self._endless = config is not None and config.stop is not None
        self._keep_labels()

    def measure_exported(self) -> None:
        """A module from a file of torch.export."""
        opened: Any = open_model_file(self._settings.file or "", self._settings.trust)
        inputs, identity = inputs_of(opened, self._settings), self._settings.identity
        self._reports.event("model", **described(opened, inputs, identity))
        self._settings = self._settings._replace(varying=opened.varying())
        captured = opened.captured(inputs, identity)
        self.measure_module(captured, lambda: self._kept_reference(captured))

    def measure_zoo(self) -> None:
        """A module that a zoo builds in this process."""
        from benchmodels.zoo.zoo_loader import open_zoo_model

        opened = open_zoo_model(self._settings)
        self._reports.event("model", **opened.description)
        for note in opened.notes:
            self._reports.message(note, "info")
        if self._settings.items is None and opened.batch is not None:
            self._settings = self._settings._replace(items=opened.batch.items, items_from=opened.batch.source)
        self.measure_module(opened.captured)

    def measure_artifact(self, script: str, args: Sequence[str]) -> None:
        with tempfile.TemporaryDirectory(prefix="benchprobe-builds-") as nowhere:
            entry = self._entry(script, args, self._settings.builds or nowhere)
            folder = str(entry.folder)
            facts = read_facts(folder)
            if facts.model is not None:
                self._reports.event("model", **facts.model)
            if entry.cached:
                self._compare_weights(facts.weights)
            subject = Subject(
                load=lambda options: self._runtime.load(ArtifactFolder(folder), options),
                inputs=read_inputs(folder),
                batch=lambda: stated_batch(self._settings) or facts.batch,
                reference=lambda: read_reference(folder),
                work=lambda precision: facts.work,
                build_s=build_seconds(facts.steps),
            )
            try:
                self._measuring().measure(subject)
            finally:
                if self._settings.lean and self._settings.builds:
                    BuildCache(self._settings.builds, self._reports.message).drop(entry)

    def build_artifact(self, script: str, args: Sequence[str]) -> None:
        """Builds it into the cache, unless it is there; for a later process that measures it."""
        entry = self._entry(script, args, self._settings.builds)
        model = read_facts(str(entry.folder)).model
        if model is not None:
            self._reports.event("model", **model)
        sizes = [path.stat().st_size for path in entry.folder.rglob("*") if path.is_file()]
        where = {"folder": str(entry.folder), "onnx": _onnx_in(str(entry.folder))}
        self._reports.event("built", **where, bytes=sum(sizes), cached=entry.cached and not self._is_new(entry))
        entry.release()

    def measure_module(self, captured: Captured, reference: Optional[Callable[[], Reference]] = None) -> None:
        """`reference`: where it comes from, if the module is not to be asked each time."""
        captured = captured._replace(module=with_results_read(captured.module))
        module, args, kwargs = captured.module, captured.args, captured.kwargs
        generates = is_generation(module)
        if generates and not self._runtime.calls_methods:
            raise Unsupported("load", ONLY_IN_TORCH)
        subject = Subject(
            load=lambda options: self._runtime.load(captured, options),
            inputs=captured,
            batch=lambda: (
                stated_batch(self._settings) or (None if generates else shown_batch(self._settings, captured))
            ),
            generates=generates,
            reference=reference or (lambda: reference_of(module, args, kwargs, self._as_called(captured))),
            work=lambda precision: count_work(module, args, kwargs, precision, may_call=True),
        )
        self._measuring().measure(subject)

    def _as_called(self, captured: Captured) -> Callable[[], ContextManager[Any]]:
        """The region of autocast that this runtime applies too, if any."""
        if captured.autocast is None or self._options.precision != FP32:
            return nullcontext
        return lambda: in_autocast(captured.autocast, self._options)

    def _kept_reference(self, captured: Captured) -> Reference:
        """Of a file; it is computed once for these inputs."""
        settings = self._settings
        parts = {**self._file_parts(settings.file or ""), "versions": module_versions(["torch"])}
        return kept_reference(
            settings.builds,
            parts,
            lambda: reference_of(captured.module, captured.args, captured.kwargs),
            self._reports.message,
            settings.rebuild,
        )

    def _measuring(self) -> ModelMeasurement:
        return ModelMeasurement(self._settings, self._runtime, self._reports, self._endless)

    def have_built(self, make: Make) -> bool:
        """Has the build in the cache, made by `make` if it is not there; whether it was made now."""
        entry = self._cached(make, "", (), self._settings.builds)
        entry.release()
        return not entry.cached

    def _entry(self, script: str, args: Sequence[str], folder: str) -> CachedBuild:
        def make(place: Path) -> List[Details]:
            on_device = self._runtime.builds_on_device and self._options.device_type != "cpu"
            build_in_child(self._settings, script, args, str(place), self._reports, on_device=on_device)
            return read_facts(str(place)).steps

        entry = self._cached(make, script, args, folder)
        self._tell_build(entry)
        return entry

    def _cached(self, make: Make, script: str, args: Sequence[str], folder: str) -> CachedBuild:
        parts = self._key_parts(script, args)
        cache = BuildCache(folder, self._reports.message)
        # What was built ahead for this launch is not built once more.
        rebuild = IF_NEEDED if built_before() is not None else self._settings.rebuild
        about = {
            "name": self._settings.build_name,
            "labels": dict(self._settings.labels),
            **name_of_sequence(self._options),
        }
        with self._reports.at("load"):
            entry = cache.entry(cache.key(parts), make, parts=parts, about=about, rebuild=rebuild)
            if entry.cached and self._settings.rebuild == IF_NEEDED and self._has_more_time(entry):
                entry.release()
                entry = cache.entry(cache.key(parts), make, parts=parts, about=about, rebuild=ALWAYS)
            return entry

    def _has_more_time(self, entry: CachedBuild) -> bool:
        """Whether its reference was given up, and may take longer now."""
        if built_before() is not None:
            return False
        given_up_s = read_reference(str(entry.folder)).given_up_s
        return given_up_s is not None and given_up_s < self._settings.reference_timeout_s

    def _tell_build(self, entry: CachedBuild) -> None:
        """Reports steps of an earlier build as cached; they are not samples of this launch, unless it was made for it."""
        ahead, now = built_before(), self._is_new(entry)
        for step in entry.steps if entry.cached else ():
            self._reports.event("build_step", **{**step, "cached": not now})
        if entry.cached and not now:
            return
        beside = ahead.beside if ahead is not None and entry.made_at >= ahead.since else 1
        labels = {"build_jobs": str(beside)} if beside > 1 else {}
        built = [step for step in entry.steps if step["step"] not in NOT_OF_THE_BUILD]
        if built:
            self._reports.measured("time.build", [build_seconds(built)], labels=labels)
        for step in built:
            self._reports.measured(f"build.{step['step']}", [step["seconds"]], labels=labels)

    def _is_new(self, entry: CachedBuild) -> bool:
        """Whether a cached one was made for this launch."""
        ahead = built_before()
        return self._settings.built_by_caller == BUILT_NOW or (ahead is not None and entry.made_at >= ahead.since)

    def _key_parts(self, script: str, args: Sequence[str]) -> Details:
        settings = self._settings
        parts: Details = {
            "runtime": self._runtime.name,
            "precision": self._options.precision,
            "device": self._options.device_type,
            "versions": self._runtime.versions(),
            "depends_on": self._runtime.depends_on(self._options),
            "format": FORMAT,
            **(self._options.of_export() if self._runtime.through_onnx else {}),
            **key_of_sequence(self._options),
        }
        if settings.file:
            # A build may refer to the file by its path.
            return {**parts, "path": os.path.abspath(settings.file), **self._file_parts(settings.file)}
        if settings.zoo:
            made_of = [settings.zoo, settings.scale, sorted(settings.zoo_parameters.items()), settings.seed]
            return {**parts, "zoo": made_of, "makers": _makers_digest(), "content": settings.content_digest}
        if (
            settings.weights_digest is None or settings.content_digest is None
        ):  # then only running the script shows what it makes
            parts["script"] = [digest_of([script]), list(args), settings.seed]
        digests = {"weights": settings.weights_digest, "content": settings.content_digest}
        return {**parts, "identity": settings.identity, **digests}

    def _file_parts(self, path: str) -> Details:
        """The content of a model file, and of its inputs."""
        settings = self._settings
        inputs = {name: digest_of([file]) for name, file in settings.input_files.items() if os.path.isfile(file)}
        return {
            "inputs": [dict(settings.types), inputs, settings.seed],
            "file": digest_of(_all_files(path)),
            "shapes": {name: list(shape) for name, shape in settings.shapes.items()},
        }

    def _keep_labels(self) -> None:
        settings = self._settings
        if not settings.build_name or not settings.builds:
            return
        try:
            keep_labels(settings.builds, settings.build_name, settings.labels)
        except OSError as error:
            self._reports.message(f"the labels of {settings.build_name} could not be kept: {error}")

    def _compare_weights(self, weights: Optional[str]) -> None:
        seen = self._settings.weights_digest
        if seen is not None and weights is not None and weights != seen:
            self._reports.message(
                f"the cached build has other weights than the model had when it was found ({weights} instead of "
                f"{seen}): the script creates new ones each time; outputs are checked against those of the build"
            )


def _onnx_in(folder: str) -> Optional[str]:
    """The ONNX file of a build that has one."""
    if not os.path.isfile(os.path.join(folder, ARTIFACT_FILE)):
        return None
    model = read_artifact(ArtifactFolder(folder)).model
    return model if model.endswith(".onnx") else None


@lru_cache(maxsize=1)
def _makers_digest() -> str:
    """Of the code that makes models of zoos: another version of it may choose other sizes, inputs or weights."""
    names = glob.glob(os.path.join(os.path.dirname(zoo.__file__), "**", "*.py"), recursive=True)
    return digest_of(sorted(names))


def _all_files(path: str) -> List[str]:
    """Of a model file; Unsupported if it does not exist."""
    paths = [path, *(files_of(path)[1:] if os.path.isfile(path) else [])]
    for each in paths:
        if not os.path.isfile(each):
            raise Unsupported("load", f"{each}: no such file", kind="not_found")
    return paths
