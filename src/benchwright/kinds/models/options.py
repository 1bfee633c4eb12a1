"""Checks options about models, from the command line or Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.model import PRECISIONS, ZOO_SCALES, ModelOptions
from benchwright.core.numbers.quantities import parse_duration
from benchwright.kinds.runtime_names import runtimes_named

_DEVICE_ALIASES = {"x86": "cpu", "nvidia": "cuda"}  # as users of MLAgility write them


def model_options_of(
    values: Mapping[str, Any], targets: Sequence[str] = (), *, any_runtime: bool = False
) -> ModelOptions:
    """Checked options; InvalidInput for an unknown runtime, device, precision or shape. `any_runtime`: they are checked later."""
    runtimes = () if any_runtime else runtimes_named(_words(values.get("runtimes", ())), values.get("python"))
    stops, sequence, digest = _of_builds(values, targets, runtimes)
    return ModelOptions(
        runtimes=runtimes,
        devices=_devices(values.get("devices", ())),
        precisions=_precisions(values.get("precisions", ())) or ("fp32",),
        threads=values.get("threads"),
        streams=values.get("streams", 1),
        max_depth=values.get("max_depth", 0),
        profile=values.get("profile", False),
        shapes=_shapes(values.get("shapes", ())),
        rebuild=values.get("rebuild", "if_needed"),
        onnx_opset=values.get("onnx_opset"),
        sequence=sequence,
        sequence_digest=digest,
        stops_after=stops,
        step_timeout_s=parse_duration(values.get("build_timeout", "10m"), where="--build-timeout"),
        find_timeout_s=_limit(values.get("find_timeout", "10m")),
        weights=values.get("weights", False),
        items=values.get("items"),
        trust=values.get("trust", False),
        scale=values.get("scale") or ZOO_SCALES[0],
    )


def _of_builds(
    values: Mapping[str, Any], targets: Sequence[str], runtimes: Sequence[str]
) -> tuple[str, str | None, str | None]:
    """After which stage to stop; the file of a build sequence, and the digest of its content."""
    if not any(values.get(name) for name in ("build_only", "export_only", "sequence_file")):
        return "", None, None
    from benchwright.kinds.models.build_options import sequence_of, stops_after

    stops = stops_after(values, runtimes)
    return stops, *sequence_of(values.get("sequence_file"), targets, runtimes, stops)


def _limit(text: str) -> float:
    seconds = parse_duration(text, where="--find-timeout")
    if seconds <= 0:
        raise InvalidInput(f"{text} is not a time limit", where="--find-timeout", remedy="write 90s, 10m or 2h")
    return seconds


def _words(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for text in texts for word in text.split(",") if word.strip()))


def _devices(texts: Sequence[str]) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(_DEVICE_ALIASES.get(word, word) for word in _words(texts)))
    for word in words:
        if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", word):
            raise InvalidInput(f"unknown device '{word}'", where="--device", remedy="use cpu, cuda or cuda:1")
    return words


def _precisions(texts: Sequence[str]) -> tuple[str, ...]:
    words = _words(texts)
    for word in words:
        if word not in PRECISIONS:
            remedy = did_you_mean(word, PRECISIONS) or f"use one of {', '.join(PRECISIONS)}"
            raise InvalidInput(f"unknown precision '{word}'", where="--precision", remedy=remedy)
    return words


def _shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, sizes = _shape(text)
        if name in shapes:
            raise InvalidInput(f"two shapes for '{name}'", where="--shape", remedy="give one per input")
        shapes[name] = sizes
    return shapes


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, dims = text.rpartition("=")
    sizes = re.split(r"[x×,]", dims)
    if not equals or not name or not all(re.fullmatch(r"[1-9]\d{0,8}", size.strip()) for size in sizes):
        raise InvalidInput(f"invalid shape '{text}'", where="--shape", remedy="write INPUT=1x3x224x224")
    return name, tuple(int(size) for size in sizes)
