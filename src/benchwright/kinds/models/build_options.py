"""How models are built, as far as users can say: checked, and applied to the runtimes that it concerns."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from benchwright.core.errors import InvalidInput
from benchwright.core.model import DEFAULT_RUNTIME, Model

if TYPE_CHECKING:
    from benchmodels.runtimes.base import Runtime

THROUGH_ONNX = "onnxruntime"  # what is built for if nothing is measured and no runtime is named
BUILD_ONLY, EXPORT_ONLY = "--build-only", "--export-only"
# Options that say how to measure, with their values if they are not given.
_OF_MEASURING: dict[str, object] = {
    **{"repeat": "1", "warmup_runs": 0, "stop": None, "warmup": None, "turns": None},
    **{"profile": False, "streams": 1, "lean_cache": False},
}


def stops_after(values: Mapping[str, Any], runtimes: Collection[str]) -> str:
    """`build`, `export`, or nothing; InvalidInput if that contradicts other options."""
    build, export = values.get("build_only", False), values.get("export_only", False)
    if not build and not export:
        return ""
    where = EXPORT_ONLY if export else BUILD_ONLY
    if build and export:
        raise InvalidInput(
            f"an export is a part of a build, so {BUILD_ONLY} has no meaning", where=where, remedy="give one"
        )
    for name, usual in _OF_MEASURING.items():
        if values.get(name, usual) != usual:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidInput(
                f"nothing is measured, so {flag} has no meaning", where=where, remedy=f"leave out {flag}"
            )
    _check_runtimes(runtimes, where)
    if export and any("int8-dynamic" in words for words in values.get("precisions", ())):
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


def sequence_of(
    path: str | None, targets: Collection[str], runtimes: Collection[str], stops: str
) -> tuple[str | None, str | None]:
    """Its absolute path and the digest of its content; InvalidInput if it is no build sequence, or nothing is built."""
    if path is None:
        return None, None
    from benchmodels.build.sequence_file import BadSequenceFile, digest_of_sequence

    try:
        digest = digest_of_sequence(path)
    except BadSequenceFile as error:
        raise InvalidInput(error.text, where=error.where, remedy=error.remedy) from None
    usual = [THROUGH_ONNX if target.lower().endswith(".onnx") else DEFAULT_RUNTIME for target in targets or ("",)]
    used = runtimes or dict.fromkeys(usual)
    if not stops and all(not _builds(name) for name in used):
        text = f"{', '.join(used)} builds nothing, so a build sequence has no effect"
        raise InvalidInput(
            text, where="--sequence-file", remedy=f"add a runtime that builds, such as --runtime {THROUGH_ONNX}"
        )
    return os.path.abspath(path), digest


def as_built(model: Model) -> Model:
    """Without what its runtime does not use: an operator set concerns only builds from ONNX, a sequence only builds."""
    runtime = _known(model.runtime)
    if runtime is None:
        return model
    if not runtime.through_onnx:
        model = replace(model, onnx_opset=None)
    return model if runtime.kind != "module" else replace(model, sequence=None, sequence_digest=None)


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
