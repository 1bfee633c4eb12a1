"""A model that the caller holds: measured in the caller's process, or built there for a process that measures the build.

The caller's model, random numbers and threads are left as they were.
"""

from __future__ import annotations

import copy
import json
import os
import uuid
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import benchprobe
from benchmodels.build.build_key import content_digest
from benchmodels.build.builder import ModelBuilder, read_facts
from benchmodels.discover.capture import modes_off
from benchmodels.identity.identity import LENGTH, identity_of, structure_of
from benchmodels.identity.signatures import signature_of
from benchmodels.identity.weights import weights_digest
from benchmodels.measure.failure_reports import failures_reported
from benchmodels.measure.jobs import MeasureJob
from benchmodels.measure.measure import refuse, refuse_without
from benchmodels.reports import Reports
from benchmodels.runtimes.base import MODULE, Unsupported
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import PART, ModelSettings, settings_from
from benchmodels.types import Details, Module, Value
from benchmodels.zoo.base import ZooModel
from benchmodels.zoo.zoo_loader import OpenedModel, opened
from benchprobe.config import VARIABLE, parse
from benchprobe.loop.measured_functions import functions
from benchprobe.loop.probe import Probe
from benchprobe.stream.events import Event


class HeldModel(NamedTuple):
    """A module and the inputs to call it with."""

    module: Module
    args: Tuple[Value, ...]
    kwargs: Dict[str, Value]

    def opened(self, identity: str) -> OpenedModel:
        """A copy, as if a script had called it; the caller's own keeps its mode, device and precision."""
        module = copy.deepcopy(self.module)
        return opened(ZooModel(module, self.args, self.kwargs, None, "", ()), identity)


def held(module: Module, inputs: Value) -> HeldModel:
    """`inputs`: keywords as a mapping, positional ones as a tuple or list, or the only one."""
    if isinstance(inputs, dict) or (hasattr(inputs, "keys") and hasattr(inputs, "__getitem__")):
        return HeldModel(module, (), {str(name): inputs[name] for name in list(inputs.keys())})
    if isinstance(inputs, (tuple, list)):
        return HeldModel(module, tuple(inputs), {})
    return HeldModel(module, (inputs,), {})


def described(model: HeldModel) -> Details:
    """The keys of its `model` event, with what builds depend on."""
    signature = signature_of(model.module.forward, model.args, model.kwargs)
    identity = identity_of(structure_of(model.module), signature)[:LENGTH]
    description = opened(ZooModel(model.module, model.args, model.kwargs, None, "", ()), identity).description
    # Without a digest nothing tells two builds apart: then each has its own.
    content = content_digest(model.module, model.args, model.kwargs) or uuid.uuid4().hex
    return {**description, "weights": weights_digest(model.module) or uuid.uuid4().hex, "content": content}


def is_measured_here(runtime: str) -> bool:
    """Whether the runtime calls the module itself; the others run a build, in a separate process."""
    return runtime_named(runtime).kind == MODULE


def measure_here(model: HeldModel, config: str) -> None:
    """Measures it as BENCHPROBE_CONFIG `config` says, into the stream that it names. Failures are events, as in any process."""
    settings = settings_from(json.loads(config)[PART]).without_limit()
    reports = Reports()
    with recorded(config), as_it_was(), failures_reported(reports):
        runtime = runtime_named(settings.runtime)
        refuse(runtime, settings)
        refuse_without(runtime, settings.options)
        with modes_off():
            taken = model.opened(settings.identity)
            reports.event("model", **taken.description)
            MeasureJob(settings, runtime, reports).measure_module(taken.captured)


class BuiltHere(NamedTuple):
    """`events`: those of the build; of a failed one its failure, too. `made`: now; False: it was cached, or it failed."""

    events: List[Event]
    failed: bool
    made: bool


def build_here(model: HeldModel, settings: ModelSettings) -> BuiltHere:
    """Has the build of a model in the cache, for another process to measure."""
    events: List[Event] = []
    reports = Reports(events.append)
    made = False
    with as_it_was(), failures_reported(reports):
        runtime = runtime_named(settings.runtime)
        refuse(runtime, settings)
        refuse_without(runtime, settings.options)

        def make(place: Path) -> Sequence[Details]:
            taken = model.opened(settings.identity)
            captured = taken.captured._replace(weights=settings.weights_digest)
            ModelBuilder(settings._replace(builds=str(place)), runtime, reports).build(captured, taken.description)
            if reports.failed:
                raise Unsupported("export", "the build failed")  # the first failure is the one that counts
            return read_facts(str(place)).steps

        with modes_off():
            made = MeasureJob(settings, runtime, reports).have_built(make)
    return BuiltHere(events, reports.failed, made)


@contextmanager
def recorded(config: str) -> Iterator[None]:
    """Loops, given values and events of this process go where `config` says."""
    probe = Probe(parse(config))
    before = (benchprobe._probe, benchprobe.iterate, benchprobe.give, benchprobe.phase)
    variable = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = config
    own: Any = benchprobe
    own._probe = probe
    own.iterate, own.give, own.phase = functions(probe)
    try:
        yield
    finally:
        own._probe, own.iterate, own.give, own.phase = before
        os.environ.pop(VARIABLE) if variable is None else os.environ.update({VARIABLE: variable})
        probe.close()


@contextmanager
def as_it_was() -> Iterator[None]:
    """Restores torch's threads, the state of its random numbers and its current device."""
    torch: Any = import_module("torch")
    threads = torch.get_num_threads()
    device = torch.cuda.current_device() if torch.cuda.is_initialized() else None
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            if device is not None:
                torch.cuda.set_device(device)
