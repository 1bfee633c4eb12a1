"""How models are built, as far as users can say: checked, and applied to the runtimes that it concerns."""

from __future__ import annotations

import os
from collections.abc import Collection

from msgspec.structs import replace

from benchmodels.runtimes.base import MODULE
from benchmodels.runtimes.registry import FOR_FILES
from benchwright.core.errors import InvalidInput
from benchwright.core.model import BUILD_RUNTIME, DEFAULT_RUNTIME, Model
from benchwright.kinds.runtime_names import known_runtime
from benchwright.options.table import OPTIONS, Options

_OF_SEQUENCES = (".onnx", ".pt2")
BUILD_ONLY, EXPORT_ONLY = "--build-only", "--export-only"


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
    for row in OPTIONS.values():
        given = getattr(options, row.name) != row.default or (row.name == "repeat" and options.up_to)
        if row.measuring and given:
            flag = row.flags[-1]
            raise InvalidInput(
                f"nothing is measured, so {flag} has no meaning", where=where, remedy=f"leave out {flag}"
            )
    _check_runtimes(options.runtimes, where)
    if export and "int8-dynamic" in options.precisions:
        raise InvalidInput("int8-dynamic comes after the export", where=where, remedy=f"use {BUILD_ONLY}")
    return "export" if export else "build"


def _check_runtimes(runtimes: Collection[str], where: str) -> None:
    for name in runtimes:
        if where == EXPORT_ONLY and name != BUILD_RUNTIME:
            text = f"models are exported to ONNX, for no runtime in particular; {name} has no part in it"
            raise InvalidInput(text, where=where, remedy=f"leave out --runtime, or build for {name}: {BUILD_ONLY}")
        if known_runtime(name).kind == MODULE:
            remedy = f"name runtimes that build, such as {BUILD_RUNTIME} or openvino"
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
    usual = [FOR_FILES.get(os.path.splitext(target)[1].lower(), DEFAULT_RUNTIME) for target in options.targets or ("",)]
    used = options.runtimes or dict.fromkeys(usual)
    if not stops and all(known_runtime(name).kind == MODULE for name in used):
        text = f"{', '.join(used)} builds nothing, so a build sequence has no effect"
        raise InvalidInput(
            text, where="--sequence-file", remedy=f"add a runtime that builds, such as --runtime {BUILD_RUNTIME}"
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
    runtime = known_runtime(model.runtime)
    if not runtime.name:
        return model
    return model.built_for(through_onnx=runtime.through_onnx, from_module=runtime.kind == MODULE)
