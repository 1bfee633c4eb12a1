"""Items per call of a found model, from options and the parameters of its script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.model import FoundModel, ScriptDiscovery

ITEMS_OPTION = "--items"
NAMES = ("batch_size", "batch-size", "batchsize", "batch", "bs")  # names of parameters that are batch sizes


class _Point(msgspec.Struct, frozen=True):
    """One run of a script. `name` and `size`: of its batch parameter."""

    name: str
    size: int
    models: tuple[FoundModel, ...]


def with_batches_known(
    asked: Sequence[Benchmark], found: Mapping[str, ScriptDiscovery], items: int | None = None
) -> dict[str, ScriptDiscovery]:
    """The same discoveries, by benchmark, with the items per call that the user or a parameter gives.

    `items`: what the user says. A parameter counts if its value is the size of the same dimension at every point of the sweep.
    """
    points: dict[str, dict[str, _Point]] = {}
    for benchmark in asked:
        discovery = found.get(benchmark.name)
        point = None if discovery is None else _point(benchmark, discovery)
        if point is not None:
            points.setdefault(benchmark.source, {})[benchmark.name] = point
    made = {}
    for benchmark in asked:
        if benchmark.name in found:
            swept = points.get(benchmark.source, {})
            models = (_known(model, benchmark, swept, items) for model in found[benchmark.name].models)
            made[benchmark.name] = msgspec.structs.replace(found[benchmark.name], models=tuple(models))
    return made


def _known(model: FoundModel, benchmark: Benchmark, points: Mapping[str, _Point], items: int | None) -> FoundModel:
    if items is not None:
        return msgspec.structs.replace(model, items=items, items_from=ITEMS_OPTION)
    own = points.get(benchmark.name)
    if own is None or not _is_a_dimension(model, own.size, list(points.values())):
        return model
    return msgspec.structs.replace(model, items=own.size, items_from=f"parameter {own.name}={own.size}")


def _point(benchmark: Benchmark, discovery: ScriptDiscovery) -> _Point | None:
    """With the batch parameter of the script, else of the sweep; None if it has none."""
    for name, value in (*discovery.parameters.items(), *benchmark.parameters.items()):
        text = str(value)
        if name in NAMES and text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0:
            return _Point(name, int(text), discovery.models)
    return None


def _is_a_dimension(model: FoundModel, size: int, points: Sequence[_Point]) -> bool:
    """Whether an input has a dimension of that size that follows the parameter through the sweep."""
    common = _dimensions(model, size)
    for point in points:
        alike = [other for other in point.models if _alike(model, other)]
        if alike:
            common &= set().union(*(_dimensions(other, point.size) for other in alike))
    return bool(common)


def _alike(model: FoundModel, other: FoundModel) -> bool:
    """Whether they are the same model, with whatever inputs."""
    return (model.qualified, model.place, model.path) == (other.qualified, other.place, other.path)


def _dimensions(model: FoundModel, size: int) -> set[tuple[str, int]]:
    return {(each.name, place) for each in model.inputs for place, one in enumerate(each.shape or ()) if one == size}
