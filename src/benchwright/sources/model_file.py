"""A model file as a target: ONNX, an exported torch program, or OpenVINO's IR."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

from benchwright.domain.benchmark import Benchmark
from benchwright.domain.errors import InvalidInput
from benchwright.domain.model import Model
from benchwright.sources.base import SourceOptions
from benchwright.sources.found_models import USUAL_STOP, USUAL_WARMUP, on_device, variant_name, variants, with_profile
from benchwright.sources.script import default_python

_USUAL_RUNTIME = {".onnx": "onnxruntime", ".pt2": "torch-eager", ".xml": "openvino"}


class ModelFileSource:
    """Reads one model file as one benchmark for each runtime."""

    name = "model"

    def recognises(self, target: str) -> bool:
        ending = os.path.splitext(target)[1].lower()
        if ending not in _USUAL_RUNTIME or not os.path.isfile(target):
            return False
        return ending != ".xml" or b"<net" in _head(target)

    def read(self, target: str, options: SourceOptions) -> list[Benchmark]:
        path = Path(target).absolute()
        ending = path.suffix.lower()
        if ending not in _USUAL_RUNTIME:
            known = ", ".join(_USUAL_RUNTIME)
            raise InvalidInput("is no model file", where=target, remedy=f"name one that ends with {known}")
        _check_content(path, ending)
        made = []
        models = options.models
        for runtime, device, precision in variants(models, _USUAL_RUNTIME[ending]):
            workload = Model(
                runtime=runtime,
                device=device,
                precision=precision,
                python=options.python or default_python(),
                cwd=options.cwd or os.getcwd(),
                file=str(path),
                identity=identity_of_file(path),
                class_=path.name,
                threads=models.threads,
                streams=models.streams,
                profile=models.profile,
                shapes=models.shapes,
                rebuild=models.rebuild,
                step_timeout_s=models.step_timeout_s,
                builds=options.builds,
            )
            benchmark = Benchmark(
                name=path.name + variant_name(runtime, device, precision),
                workload=workload,
                source=target,
                placement=on_device(device),
                stop=USUAL_STOP,
                warmup=USUAL_WARMUP,
                loop="latency",
            )
            made += with_profile(benchmark)
        return made


def identity_of_file(path: Path) -> str:
    """Of its content, and of the weights beside it."""
    digest = hashlib.sha256()
    for file in (path, path.with_suffix(".bin"), path.with_name(path.name + ".data")):
        if file.is_file() and (file == path or file.suffix != path.suffix):
            with open(file, "rb") as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()[:16]


def _head(path: str | Path) -> bytes:
    try:
        with open(path, "rb") as handle:
            return handle.read(4096)
    except OSError:
        return b""


def _check_content(path: Path, ending: str) -> None:
    """InvalidInput for a file that cannot be what its name says."""
    wrong = None
    if path.stat().st_size == 0:
        wrong = "is empty"
    elif ending == ".pt2" and not zipfile.is_zipfile(path):
        wrong = "is no exported program: those of torch.export.save are zip files"
    elif ending == ".xml" and b"<net" not in _head(path):
        wrong = "is no OpenVINO model: it has no <net>"
    elif ending == ".xml" and not path.with_suffix(".bin").is_file():
        wrong = f"needs {path.with_suffix('.bin').name}, its weights, beside it"
    if wrong:
        raise InvalidInput(wrong, where=str(path), remedy="export the model again")
