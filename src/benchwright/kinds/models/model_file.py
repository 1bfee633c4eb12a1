"""A model file as a target: ONNX, an exported torch program, OpenVINO's IR or TFLite."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

from benchmodels.runtimes.registry import FOR_FILES
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.models.benchmarks import (
    USUAL_STOP,
    USUAL_WARMUP,
    model_of,
    on_device,
    variant_name,
    variants,
    with_profile,
)
from benchwright.kinds.models.build_options import check_file_options
from benchwright.kinds.models.kind import ModelsKind
from benchwright.options.table import Options

TRUSTED = "runs its own code when loaded, as --trust allows"


class ModelFileKind(ModelsKind):
    """Reads one model file as one benchmark for each runtime."""

    name = "model"

    def recognises(self, target: str) -> bool:
        ending = os.path.splitext(target)[1].lower()
        if ending not in FOR_FILES or not os.path.isfile(target):
            return False
        return ending != ".xml" or b"<net" in _head(target)

    def read(self, target: str, options: Options) -> list[Benchmark]:
        path = Path(target).absolute()
        ending = path.suffix.lower()
        if ending not in FOR_FILES:
            known = ", ".join(FOR_FILES)
            raise InvalidInput("is not a model file", where=target, remedy=f"name one that ends with {known}")
        _check_content(path, ending)
        check_file_options(target, options)
        if options.params:
            text = "--param is for scripts: a model file has no arguments"
            raise InvalidInput(text, where=target, remedy="give its shapes with --shape, or measure it alone")
        made = []
        notes = _code_of_its_own(path, target, options.trust) if ending == ".pt2" else ()
        for variant in variants(options, FOR_FILES[ending]):
            workload = model_of(
                options,
                **variant.fields,
                python=options.python or default_python(),
                cwd=options.cwd or os.getcwd(),
                file=str(path),
                identity=identity_of_file(path),
                class_=path.name,
            )
            benchmark = Benchmark(
                name=path.name + variant_name(workload, variant.swept),
                workload=workload,
                source=target,
                placement=on_device(variant.device),
                stop=USUAL_STOP,
                warmup=USUAL_WARMUP,
                loop="latency",
                parameters=variant.swept,
                notes=notes,
            )
            made += with_profile(benchmark)
        return made


def identity_of_file(path: Path) -> str:
    """Of its content and its weight files. A missing one is reported when the model is measured."""
    from benchmodels.files.file_content import digest_of, files_of

    return digest_of([file for file in files_of(str(path)) if os.path.isfile(file)])[:16]


def _code_of_its_own(path: Path, target: str, trust: bool) -> tuple[str, ...]:
    """The note on a file that runs code when loaded; InvalidInput if it is not trusted."""
    from benchmodels.files.file_trust import code_in

    try:
        found = code_in(str(path))
    except ValueError as error:
        raise InvalidInput(
            f"is not an exported program: {error}", where=target, remedy="export the model again"
        ) from None
    if found is None:
        return ()
    if not trust:
        remedy = "measure it with --trust if you know where it comes from"
        raise InvalidInput(f"would run its own code when loaded: {found}", where=target, remedy=remedy)
    return (f"{TRUSTED}: {found}",)


def trusted_code(benchmarks: Iterable[Benchmark]) -> list[str]:
    """Warnings before any of them is loaded."""
    found = ((b.source, note) for b in benchmarks for note in b.notes if note.startswith(TRUSTED))
    return [f"{source}: {note}" for source, note in dict.fromkeys(found)]


def _head(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as handle:
            return handle.read(4096)
    except OSError:
        return b""


def _check_content(path: Path, ending: str) -> None:
    """InvalidInput for a file whose content does not match its suffix."""
    wrong = None
    if path.stat().st_size == 0:
        wrong = "is empty"
    elif ending == ".pt2":
        wrong = _no_exported_program(path)
    elif ending == ".xml" and b"<net" not in _head(path):
        wrong = "is not an OpenVINO model: it has no <net>"
    elif ending == ".xml" and not path.with_suffix(".bin").is_file():
        wrong = f"needs {path.with_suffix('.bin').name}, its weights, beside it"
    elif ending == ".tflite" and _head(path)[4:8] != b"TFL3":
        wrong = "is not a TFLite model"
    if wrong:
        raise InvalidInput(wrong, where=str(path), remedy="export the model again")


def _no_exported_program(path: Path) -> str | None:
    """The message for what it is instead."""
    try:
        with zipfile.ZipFile(path) as archive:
            # Without the top folder of the archive.
            parts = {"/".join(name.split("/")[1:]) for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError):
        return "is not an exported program: those of torch.export.save are zip files"
    if any(part.startswith("data/aotinductor/") for part in parts) and not any(p.startswith("models/") for p in parts):
        return "is a compiled package of AOTInductor; use the output of torch.export.save"
    if any(part.startswith("code/") for part in parts):
        return "is a TorchScript archive; use the output of torch.export.save"
    if "data.pkl" in parts:
        return "is a file of torch.save; use the output of torch.export.save"
    return None
