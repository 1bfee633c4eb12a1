"""What the folder of a build holds beside the runtime's own files: inputs, reference outputs, and facts about them."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from benchmodels.check.output_check import OutputError
from benchmodels.check.reference import Reference
from benchmodels.measure.batch import Batch
from benchmodels.measure.work import CallWork
from benchmodels.tensors import load_arrays, save_arrays

FORMAT = 3
INPUTS, REFERENCE, FACTS = "inputs.npz", "reference.npz", "facts.json"
NOT_OF_THE_BUILD = ("reference",)  # a step of ours: it is no part of the time that a build takes

Step = Mapping[str, Any]  # as the `build_step` event has it


class Facts(NamedTuple):
    """`batch`: what the model itself shows of it. `weights`: the digest of those that were built. `steps`: those of the build. `model`: what a `model` event says, of
    a model file."""

    batch: Optional[Batch]
    work: CallWork
    steps: List[Dict[str, Any]]
    weights: Optional[str] = None
    model: Optional[Dict[str, Any]] = None


def build_seconds(steps: Sequence[Step]) -> float:
    """What a build took of the time to a first result."""
    return float(sum(step["seconds"] for step in steps if step["step"] not in NOT_OF_THE_BUILD))


def write_entry(folder: str, inputs: Mapping[str, Any], reference: Reference, facts: Facts) -> None:
    """Facts last: a folder without them is no build."""
    save_arrays(os.path.join(folder, INPUTS), inputs)
    save_arrays(os.path.join(folder, REFERENCE), reference.outputs)
    told = {
        "format": FORMAT,
        "reference": reference._replace(outputs={})._asdict(),
        **facts._asdict(),
        "batch": None if facts.batch is None else facts.batch._asdict(),
        "work": facts.work._asdict(),
    }
    aside = os.path.join(folder, f"{FACTS}.aside")
    with open(aside, "w") as file:
        json.dump(told, file)
    os.replace(aside, os.path.join(folder, FACTS))


def read_facts(folder: str) -> Facts:
    told = _read(folder)
    batch = None if told["batch"] is None else Batch(**told["batch"])
    return Facts(batch, CallWork(**told["work"]), told["steps"], told["weights"], told["model"])


def read_inputs(folder: str) -> Dict[str, Any]:
    """Arrays by name."""
    return load_arrays(os.path.join(folder, INPUTS))


def read_reference(folder: str) -> Reference:
    told = _read(folder)["reference"]
    own = [OutputError(*error) for error in told["own"]]
    outputs = load_arrays(os.path.join(folder, REFERENCE))
    return Reference(outputs, told["label"], own, told["varies"], told["note"], told["keeps"])


def _read(folder: str) -> Dict[str, Any]:
    with open(os.path.join(folder, FACTS)) as file:
        told: Dict[str, Any] = json.load(file)
    if told.get("format") != FORMAT:
        raise ValueError(f"{folder}: format {told.get('format')}, not {FORMAT}")
    return told
