"""A build sequence applied to an .onnx file of the user: to a copy, which belongs to the build."""

from __future__ import annotations

import os
import shutil
from importlib import import_module
from typing import Any, List, Mapping, Tuple

from benchmodels.build.sequence_file import BuildSequence
from benchmodels.files.file_content import files_of
from benchmodels.runtimes.base import ArtifactFolder, StepTimer, Unsupported
from benchmodels.runtimes.parts.artifact import read_artifact, write_artifact
from benchmodels.runtimes.parts.onnx_graph import graph_inputs, graph_precision, output_names, value_type
from benchmodels.runtimes.parts.problems import explaining
from benchmodels.types import Array

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
