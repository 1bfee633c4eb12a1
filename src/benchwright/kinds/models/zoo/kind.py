"""A zoo's model as a target: `transformers:bert`, built from its configuration with random weights."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import benchmodels.zoo
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.model import ZOO_SCALES, Model
from benchwright.kinds.models.benchmarks import (
    USUAL_STOP,
    USUAL_WARMUP,
    model_of,
    on_device,
    variant_name,
    variants,
    with_profile,
)
from benchwright.kinds.models.kind import ModelsKind
from benchwright.kinds.models.zoo.catalogue import ListedModel
from benchwright.kinds.models.zoo.interpreters import ZooPythons, is_own_environment
from benchwright.kinds.models.zoo.targets import chosen, is_zoo_target, models_meant, zoo_of
from benchwright.kinds.sweep import is_variable, named_point, sweep_points, variables
from benchwright.options.table import Options

_SCALE = "scale"
_DIGITS = 16


class ZooKind(ModelsKind):
    """Reads a zoo target as one benchmark for each model, point of a sweep, runtime, device and precision.

    It asks the interpreter which models its zoos have; nothing is built.
    """

    name = "zoo"
    takes_arguments = True

    def recognises(self, target: str) -> bool:
        return is_zoo_target(target)

    def read(self, target: str, options: Options) -> list[Benchmark]:
        pythons = ZooPythons.meant(options)
        models = chosen(
            models_meant(target, pythons),
            tasks=options.tasks,
            select=options.select,
            exclude=options.exclude,
            target=target,
        )
        return [
            benchmark
            for model in models
            for point in sweep_points(options.swept, options.sweep)
            for benchmark in _benchmarks(model, point, options, pythons)
        ]

    def warnings(self, benchmarks: Sequence[Benchmark], options: Options) -> list[str]:
        works = [b.workload for b in benchmarks if isinstance(b.workload, Model) and b.workload.zoo]
        zoos = {(str(work.zoo).partition(":")[0], work.python) for work in works}
        return [
            f"{zoo}: measured in its own environment, {os.path.dirname(os.path.dirname(python))}; --python chooses another"
            for zoo, python in sorted(zoos)
            if is_own_environment(python, zoo)
        ]


def _benchmarks(
    model: ListedModel, point: dict[str, str], options: Options, pythons: ZooPythons
) -> Iterable[Benchmark]:
    asked = _parameters(options.script_args) | {k: v for k, v in point.items() if not is_variable(k)}
    scale = _checked_scale(asked.pop(_SCALE, options.scale))
    shown = ({_SCALE: scale} if scale != ZOO_SCALES[0] and _SCALE not in point else {}) | point
    zoo = zoo_of(model.zoo, pythons, model.target)
    sizes_from = [model.sizes_from] if model.sizes_from else []
    for variant in variants(options):
        workload = model_of(
            options,
            **variant.fields,
            python=pythons.of(model.zoo),
            cwd=options.cwd or os.getcwd(),
            zoo=model.target,
            scale=scale,
            zoo_parameters=asked,
            identity=_digest(model.canonical, scale, sorted(asked.items()), *sizes_from),
            content=_digest(zoo.version, zoo.torch, _sources(), *sizes_from),
            class_=model.target,
        )
        yield from with_profile(
            Benchmark(
                name=model.target + named_point(shown) + variant_name(workload, variant.swept),
                workload=workload,
                source=model.target,
                placement=on_device(variant.device),
                stop=USUAL_STOP,
                warmup=USUAL_WARMUP,
                loop="latency",
                parameters=shown | variant.swept,
                env=variables(point),
                labels={**model.all_labels, _SCALE: scale},
                notes=_notes(model, scale),
            )
        )


def _notes(model: ListedModel, scale: str) -> tuple[str, ...]:
    """Where sizes come from; at scale tiny they are none of the model's own."""
    return (f"sizes from {model.sizes_from}",) if model.sizes_from and scale != ZOO_SCALES[0] else ()


def _parameters(words: Sequence[str]) -> dict[str, str]:
    """`--batch_size 8 --height 64`, or with =, as the zoo's parameters."""
    found: dict[str, str] = {}
    rest = [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for name, value in zip(rest[::2], rest[1::2], strict=False):
        if not re.fullmatch(r"--[A-Za-z_][\w-]*", name):
            break
        found[name.removeprefix("--").replace("-", "_")] = value
    if 2 * len(found) != len(rest):
        text = f"'{' '.join(words)}' is not a list of parameters"
        raise InvalidInput(text, where="--script-args", remedy="write --batch_size 8 --height 64")
    return found


def _checked_scale(word: str) -> str:
    if word not in ZOO_SCALES:
        remedy = did_you_mean(word, ZOO_SCALES) or f"use one of {', '.join(ZOO_SCALES)}"
        raise InvalidInput(f"unknown scale '{word}'", where="--scale", remedy=remedy)
    return word


@functools.cache
def _sources() -> str:
    """The code that makes models of zoos: a build by other code may be of other sizes."""
    folder = Path(benchmodels.zoo.__file__).parent
    return _digest([path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))])


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_DIGITS]
