"""How models are built, as far as users can say: checked, and applied to the runtimes that it concerns."""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from benchwright.core.errors import InvalidInput
from benchwright.core.model import DEFAULT_RUNTIME, Model
from benchwright.options.table import Options

if TYPE_CHECKING:
    from benchmodels.runtimes.base import Runtime

THROUGH_ONNX = "onnxruntime"  # what is built for if nothing is measured and no runtime is named
_OF_SEQUENCES = (".onnx", ".pt2")
BUILD_ONLY, EXPORT_ONLY = "--build-only", "--export-only"
# Options that say how to measure.
_OF_MEASURING = (
    *("repeat", "warmup_runs", "stop", "warmup", "turns", "profile", "streams", "lean_cache"),
    *("enough", "decision"),
)


def with_sequence(options: Options) -> Options:
    """With what stops a build, and with the path and the digest of its sequence; InvalidInput if they contradict others."""
    stops = _stops_after(options)
    path, digest = _sequence_of(options, stops)
    return replace(options, stops_after=stops, sequence_file=path, sequence_digest=digest)


def _stops_after(options: Options) -> str:
    """`build`, `export`, or nothing; InvalidInput if that contradicts other options."""
    build, export = options.build_only, options.export_only
    if not build and not export:
        return ""
    where = EXPORT_ONLY if export else BUILD_ONLY
    if build and export:
        raise InvalidInput(
            f"an export is a part of a build, so {BUILD_ONLY} has no meaning", where=where, remedy="give one"
        )
    usual = Options()
    for name in _OF_MEASURING:
        if getattr(options, name) != getattr(usual, name):
            flag = "--repeat" if name in ("enough", "decision") else f"--{name.replace('_', '-')}"
            raise InvalidInput(
                f"nothing is measured, so {flag} has no meaning", where=where, remedy=f"leave out {flag}"
            )
    _check_runtimes(options.runtimes, where)
    if export and "int8-dynamic" in options.precisions:
        raise InvalidInput("int8-dynamic comes after the export", where=where, remedy=f"use {BUILD_ONLY}")
    return "export" if export else "build"


def _check_runtimes(runtimes: Collection[str], where: str) -> None:
    for name in runtimes:
        if where == EXPORT_ONLY and name != THROUGH_ONNX:
            text = f"models are exported to ONNX, for no runtime in particular; {name} has no part in it"
            raise InvalidInput(text, where=where, remedy=f"leave out --runtime, or build for {name}: {BUILD_ONLY}")
        runtime = _known(name)
        if runtime is not None and runtime.kind == "module":
            remedy = f"name runtimes that build, such as {THROUGH_ONNX} or openvino"
            raise InvalidInput(f"{name} runs the module itself and builds nothing", where=where, remedy=remedy)


def _sequence_of(options: Options, stops: str) -> tuple[str | None, str | None]:
    """Its absolute path and the digest of its content; InvalidInput if it is no build sequence, or nothing is built."""
    path = options.sequence_file
    if path is None:
        return None, None
    from benchmodels.build.sequence_file import BadSequenceFile, digest_of_sequence

    try:
        digest = digest_of_sequence(path)
    except BadSequenceFile as error:
        raise InvalidInput(error.text, where=error.where, remedy=error.remedy) from None
    usual = [
        THROUGH_ONNX if target.lower().endswith(".onnx") else DEFAULT_RUNTIME for target in options.targets or ("",)
    ]
    used = options.runtimes or dict.fromkeys(usual)
    if not stops and all(not _builds(name) for name in used):
        text = f"{', '.join(used)} builds nothing, so a build sequence has no effect"
        raise InvalidInput(
            text, where="--sequence-file", remedy=f"add a runtime that builds, such as --runtime {THROUGH_ONNX}"
        )
    return os.path.abspath(path), digest


def check_file_options(target: str, options: Options) -> None:
    """InvalidInput if they say how to build something else than the model file `target`."""
    ending = os.path.splitext(target)[1]
    if options.sequence_file and ending.lower() not in _OF_SEQUENCES:
        text = f"a build sequence changes modules of torch and ONNX files, and a {ending} file is neither"
        raise InvalidInput(
            text, where=target, remedy="leave out --sequence-file, or measure the .onnx file it came from"
        )
    if options.onnx_opset is not None and ending.lower() != ".pt2":
        text = f"a {ending} file is not exported, so it keeps its operator set"
        raise InvalidInput(text, where=target, remedy="leave out --onnx-opset")


def as_built(model: Model) -> Model:
    """Without what its runtime does not use, if that is known."""
    runtime = _known(model.runtime)
    if runtime is None:
        return model
    return model.built_for(through_onnx=runtime.through_onnx, from_module=runtime.kind == "module")


def _builds(name: str) -> bool:
    runtime = _known(name)
    return runtime is None or runtime.kind != "module"


def _known(name: str) -> Runtime | None:
    """None: it is a plug-in of the environment that models are measured in."""
    from benchmodels.runtimes.registry import UnknownRuntime, runtime_named

    try:
        return runtime_named(name)
    except UnknownRuntime:
        return None


@cache
def builds_from_onnx(name: str) -> bool:
    runtime = _known(name)
    return runtime is not None and runtime.through_onnx
