"""Builds a captured model, or a model file, for a runtime, into a folder, and reads it back.

Besides the runtime's own files the folder holds inputs, reference outputs and facts about them. Import it only after the
script has run: it imports numpy.
"""

from __future__ import annotations

import copy
import errno
import json
import os
import shutil
from importlib import import_module
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.arrays import load_arrays, save_arrays
from benchmodels.build.sequence_file import BuildSequence, sequence_of
from benchmodels.check.output_check import OutputError
from benchmodels.check.reference import Reference, reference_of
from benchmodels.discover.callers import is_library
from benchmodels.failures import has_room, is_out_of_memory
from benchmodels.files.file_content import files_of
from benchmodels.files.given_inputs import check_types, shapes_and_arrays
from benchmodels.files.loader import open_model_file
from benchmodels.files.model_file import ModelFile, described, made_inputs
from benchmodels.measure.batch import Batch, shown_batch
from benchmodels.measure.failure_reports import failures_reported
from benchmodels.measure.generation import ONLY_IN_TORCH, is_generation
from benchmodels.measure.work import CallWork, count_work
from benchmodels.reports import BuildSteps, Reports
from benchmodels.runtimes.base import ArtifactFolder, Captured, Runtime, StepTimer, Unsupported
from benchmodels.runtimes.parts.artifact import read_artifact, write_artifact
from benchmodels.runtimes.parts.onnx_graph import graph_inputs, graph_precision, output_names, value_type
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.settings import ModelSettings
from benchmodels.tensors import flatten_call
from benchmodels.types import Array, Arrays, Details, Module

FOLDER = "sequence"  # inside the build


def changed_copy(path: str, folder: str, sequence: BuildSequence, inputs: Mapping[str, Array], steps: StepTimer) -> str:
    """The path of what the sequence makes of the file; its inputs and outputs must stay."""
    if sequence.of_model:
        name = sequence.of_model[0].__name__
        text = (
            f'{name} of the build sequence takes a module of torch, and an .onnx file has none; put "export" before it'
        )
        raise Unsupported("convert", f"{text}, if it takes the path of an ONNX file", kind="error")
    changed = sequence.changed_onnx(_copied(path, os.path.join(folder, FOLDER)), inputs, steps)
    before, after = _ports(path), _ports(changed)
    if before != after:
        text = f"{', '.join(before[0])} → {', '.join(before[1])} before, {', '.join(after[0])} → {', '.join(after[1])} after"
        name = os.path.basename(sequence.path)
        raise Unsupported("convert", f"{name} changes what the model takes and returns: {text}", kind="error")
    return changed


def keep_what_is_used(folder: str, changed: str) -> None:
    """The build refers to the changed file by its place in the build, or does without it; its precision is that of the file."""
    artifact = read_artifact(ArtifactFolder(folder))
    found = graph_precision(_loaded(changed), artifact.precision)
    used = os.path.realpath(artifact.model)
    # The place is relative: a build is renamed when it is complete.
    model = os.path.relpath(used, os.path.realpath(folder))
    write_artifact(folder, artifact._replace(model=model, precision=found))
    if used != changed:
        shutil.rmtree(os.path.join(folder, FOLDER))


def _copied(path: str, folder: str) -> str:
    """With its files of weights, at the same places beside it."""
    root = os.path.dirname(os.path.abspath(path))
    for file in files_of(os.path.abspath(path)):
        copy = os.path.join(folder, os.path.relpath(file, root))
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copyfile(file, copy)
    return os.path.join(folder, os.path.basename(path))


def _ports(path: str) -> Tuple[List[str], List[str]]:
    model = _loaded(path)
    inputs = [f"{value.name} {value_type(value)}" for value in graph_inputs(model)]
    return inputs, output_names(model)


def _loaded(path: str) -> Any:
    with explaining("convert"):
        return import_module("onnx").load(path, load_external_data=False)


FORMAT = 3
INPUTS, REFERENCE, FACTS = "inputs.npz", "reference.npz", "facts.json"
REFERENCE_STEP = "reference"
NOT_OF_THE_BUILD = (REFERENCE_STEP,)  # our own step, not part of the build's time

EXPORTED = "it was exported by torch.export already; save it with torch.export.save, and measure the .pt2 file"
SCRIPTED = "it is made by torch.jit, and exporters take only the module it was made from; call that one in the script"
WITH_NUMPY = "its forward computes with numpy, which cannot be exported; use functions of torch instead"

Step = Mapping[str, Any]  # as the `build_step` event has it


class Facts(NamedTuple):
    """`batch`: found by calling the model. `weights`: the digest of the weights built. `model`: the `model` event of a
    model file."""

    batch: Optional[Batch]
    work: CallWork
    steps: List[Details]
    weights: Optional[str] = None
    model: Optional[Details] = None


def build_seconds(steps: Sequence[Step]) -> float:
    """The build's part of the time to a first result."""
    return float(sum(step["seconds"] for step in steps if step["step"] not in NOT_OF_THE_BUILD))


def write_entry(folder: str, inputs: Mapping[str, Array], reference: Reference, facts: Facts) -> None:
    """Facts last: a folder without them is incomplete."""
    save_arrays(os.path.join(folder, INPUTS), inputs)
    save_arrays(os.path.join(folder, REFERENCE), reference.outputs)
    entry = {
        "format": FORMAT,
        "reference": reference._replace(outputs={})._asdict(),
        **facts._asdict(),
        "batch": None if facts.batch is None else facts.batch._asdict(),
        "work": facts.work._asdict(),
    }
    aside = os.path.join(folder, f"{FACTS}.aside")
    with open(aside, "w") as file:
        json.dump(entry, file)
    os.replace(aside, os.path.join(folder, FACTS))


def read_facts(folder: str) -> Facts:
    entry = _read(folder)
    batch = None if entry["batch"] is None else Batch(**entry["batch"])
    return Facts(batch, CallWork(**entry["work"]), entry["steps"], entry["weights"], entry["model"])


def read_inputs(folder: str) -> Details:
    """Arrays by name."""
    return load_arrays(os.path.join(folder, INPUTS))


def read_reference(folder: str) -> Reference:
    stored = _read(folder)["reference"]
    own = [OutputError(*error) for error in stored["own"]]
    outputs = load_arrays(os.path.join(folder, REFERENCE))
    return Reference(
        outputs, stored["label"], own, stored["varies"], stored["note"], stored["keeps"], stored.get("given_up_s")
    )


def _read(folder: str) -> Details:
    with open(os.path.join(folder, FACTS)) as file:
        entry: Details = json.load(file)
    if entry.get("format") != FORMAT:
        raise ValueError(f"{folder}: format {entry.get('format')}, not {FORMAT}")
    return entry


class ModelBuilder:
    """One build. Its public methods raise nothing: they report failures."""

    def __init__(self, settings: ModelSettings, runtime: Runtime, reports: Reports) -> None:
        self._settings = settings
        self._runtime = runtime
        self._reports = reports
        self._steps = BuildSteps(reports, runtime.versions())
        self._options = settings.options

    def build(self, captured: Captured, description: Optional[Details] = None) -> None:
        """`description`: the keys of its `model` event, if no script reports them."""
        with failures_reported(self._reports):
            self._build(captured, description)

    def build_file(self, path: str) -> None:
        with failures_reported(self._reports):
            with self._reports.at("load"):
                opened: Any = open_model_file(path, self._settings.trust)
                arrays = inputs_of(opened, self._settings)
                description = described(opened, arrays, self._settings.identity)
            if hasattr(opened, "captured"):  # it holds a module of torch
                self._settings = self._settings._replace(varying=opened.varying())
                self._build(opened.captured(arrays, self._settings.identity), description)
            else:
                self._build_as_it_is(path, opened, arrays, description)

    def build_zoo(self) -> None:
        from benchmodels.zoo.zoo_loader import open_zoo_model

        with failures_reported(self._reports):
            with self._reports.at("load"):
                opened = open_zoo_model(self._settings)
            for note in opened.notes:
                self._reports.message(note, "info")
            self._build(opened.captured, opened.description, opened.batch)

    def _build(self, captured: Captured, description: Optional[Details] = None, batch: Optional[Batch] = None) -> None:
        """The reference first: exporting may leave a model unfit to be called."""
        module, args, kwargs = captured.module, captured.args, captured.kwargs
        if is_generation(module):
            raise Unsupported("export", ONLY_IN_TORCH)
        if self._settings.without_reference:
            reference = self._no_reference()
        else:
            with self._steps.step(REFERENCE_STEP):
                reference = reference_of(module, args, kwargs)
                batch = batch or shown_batch(self._settings, captured)
        # Copies: an exporter may call the model with its inputs.
        inputs = {name: tensor.detach().clone() for name, tensor in flatten_call(args, kwargs, captured.names)}
        sequence = sequence_of(self._options, "export")
        changed = captured._replace(module=self._changed(captured, inputs, sequence)) if sequence else captured
        with self._reports.at("export"):
            try:
                self._runtime.build(changed, self._settings.builds, self._options, self._steps)
            except Exception as error:
                if "Calling train() is not supported" in str(error):  # or eval()
                    raise Unsupported("export", EXPORTED) from error
                if is_scripted(module):
                    raise Unsupported("export", SCRIPTED) from error
                if is_out_of_memory(error) or not uses_numpy(module):
                    raise
                text = str(getattr(error, "text", error)).strip().partition("\n")[0]
                raise Unsupported("export", f"{WITH_NUMPY} ({text})") from error
        # Not earlier: importing on behalf of the exporter would shorten its measured time.
        may_call = not self._settings.without_reference
        work = count_work(module, args, kwargs, self._options.precision, may_call=may_call)
        self._write(inputs, reference, Facts(batch, work, self._steps.done, captured.weights, description))

    def _changed(self, captured: Captured, inputs: Mapping[str, Any], sequence: BuildSequence) -> Module:
        """A copy of the module, changed by the build sequence; the reference and the counts stay those of the original."""
        if sequence.of_onnx and not self._runtime.through_onnx:
            name = sequence.of_onnx[0].__name__
            raise Unsupported(
                "export", f"{name} of the build sequence takes ONNX, which {self._runtime.name} is not built from"
            )
        if not sequence.of_model:
            return captured.module
        return sequence.changed_model(copy.deepcopy(captured.module), inputs, self._steps)

    def _build_as_it_is(self, path: str, opened: ModelFile, arrays: Arrays, description: Details) -> None:
        if self._settings.without_reference:
            reference = self._no_reference()
        else:
            with self._steps.step(REFERENCE_STEP):
                reference = opened.reference(arrays)
        work = opened.work(arrays)
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}
        folder = self._settings.builds
        with self._reports.at("convert"):
            sequence = sequence_of(self._options, "convert")
            changed = changed_copy(path, folder, sequence, arrays, self._steps) if sequence else path
            self._runtime.build_file(changed, folder, self._options, self._steps, shapes)
            if sequence:
                keep_what_is_used(folder, changed)
        self._write(arrays, reference, Facts(opened.batch(arrays), work, self._steps.done, None, description))

    def _no_reference(self) -> Reference:
        return Reference({}, "none", [], given_up_s=self._settings.reference_timeout_s)

    def _write(self, inputs: Mapping[str, Array], reference: Reference, facts: Facts) -> None:
        with self._reports.at("convert"):
            if not has_room(self._settings.builds):  # the build may be truncated without an error
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._settings.builds)
            write_entry(self._settings.builds, inputs, reference, facts)


def is_scripted(module: Module) -> bool:
    """Whether the model, or a part of it, was scripted or traced."""
    return any(type(part).__module__.startswith("torch.jit") for part in module.modules())


def uses_numpy(module: Module) -> bool:
    """Whether the user's own `forward`, of the model or a part, names numpy."""
    functions = [getattr(type(part).forward, "__code__", None) for part in module.modules()]
    codes = [code for code in functions if code is not None and not is_library(code.co_filename)]
    return any({"numpy", "np", "from_numpy"} & {*code.co_names} for code in codes)


def inputs_of(opened: ModelFile, settings: ModelSettings) -> Details:
    """The inputs saved with the file, unless shapes or files were given; otherwise those of the files, or random ones."""
    check_types(opened.inputs, settings.types)
    saved = getattr(opened, "saved_inputs", None)
    if saved is not None and not settings.shapes and not settings.input_files:
        found = saved()
        if found is not None:
            return dict(found)
    shapes, given = shapes_and_arrays(opened.inputs, settings.shapes, settings.input_files)
    return {**made_inputs(opened.inputs, shapes, settings.seed or 0), **given}
