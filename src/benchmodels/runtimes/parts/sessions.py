"""Shared by sessions of several runtimes: streams, closing, and the arithmetic of profiles."""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Any, Callable, Dict, List, Optional, Tuple

from benchmodels.runtimes.base import FP32, OpTime, RuntimeOptions, Session, Times, slowest_first
from benchmodels.runtimes.parts.artifact import BuiltModel, as_type, in_order
from benchmodels.types import Array, Details, ModelInputs, Prepared

WARMUP_CALLS = 3  # of a profile


class ArtifactSession:
    """A session of a runtime that works on its own copy of the inputs."""

    provider = "CPU"
    precision = FP32
    consumes_inputs = False
    first_run_builds = False
    details: Details

    def __init__(self, artifact: BuiltModel, options: RuntimeOptions) -> None:
        self._artifact = artifact
        self._options = options
        self.precision = artifact.precision

    def inputs_changed(self, prepared: Prepared, inputs: ModelInputs) -> bool:
        return False  # these runtimes do not write to their inputs

    def typed_inputs(self, inputs: ModelInputs) -> List[Array]:
        """The inputs in the order of the artifact's ports, in their types."""
        ports = self._artifact.inputs
        arrays = in_order(inputs, [each.port for each in ports], self._artifact)
        return [as_type(array, each.dtype) for array, each in zip(arrays, ports)]


class SharedStream:
    """One of several concurrent callers. Whatever it does not do itself, its owner does, and closes."""

    first_run_builds = False

    def __init__(self, owner: Session, run: Optional[Callable[[Any], Any]] = None) -> None:
        self._owner = owner
        self.provider, self.precision, self.details = owner.provider, owner.precision, owner.details
        self.prepare, self.outputs, self.inputs_changed = owner.prepare, owner.outputs, owner.inputs_changed
        self.new_stream, self.profile = owner.new_stream, owner.profile
        self.run: Callable[[Any], Any] = run or owner.run

    @property
    def consumes_inputs(self) -> bool:
        return self._owner.consumes_inputs

    def close(self) -> None:
        self.run = closed


def closed(*args: Any, **kwargs: Any) -> Any:
    """Stands in for the call of a session that was closed."""
    raise RuntimeError("the session is closed")


def median_call_s(call: Callable[[], object], calls: int) -> float:
    taken = []
    for _ in range(calls):
        began = perf_counter()
        call()
        taken.append(perf_counter() - began)
    return median(taken)


def only_the_whole(call: Callable[[], object], calls: int) -> List[OpTime]:
    """The profile of a runtime that does not time its operators."""
    return [OpTime("the runtime", "", median_call_s(call, calls), 1.0)]


def add_time(times: Times, place: Tuple[str, str], seconds: float, count: float = 1.0) -> None:
    before, so_far = times.get(place, (0.0, 0.0))
    times[place] = (before + seconds, so_far + count)


def without_warmup(runs: Dict[Tuple[str, str], List[float]], calls: int) -> List[OpTime]:
    """The profile from the seconds of every run of each operator over WARMUP_CALLS + `calls` calls."""
    times: Times = {}
    for place, seconds in runs.items():
        kept = seconds[len(seconds) * WARMUP_CALLS // (WARMUP_CALLS + calls) :]
        times[place] = (sum(kept), len(kept))
    return slowest_first(times, calls)


def port_names(artifact: BuiltModel) -> List[str]:
    return [each.port for each in artifact.inputs]
