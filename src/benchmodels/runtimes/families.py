"""Base classes of runtimes that load artifacts, and of runtimes that build from ONNX."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import Iterator, Tuple, Union

from benchmodels.runtimes.base import (
    FP32,
    ArtifactFolder,
    Captured,
    RuntimeBase,
    RuntimeOptions,
    Session,
    StepTimer,
    Unsupported,
    is_importable,
)
from benchmodels.runtimes.parts.artifact import BuiltModel, read_artifact
from benchmodels.runtimes.parts.export import OnnxExport, export_onnx
from benchmodels.runtimes.parts.problems import explaining


class ArtifactRuntime(RuntimeBase):
    """Loads what `build` left in a folder. A subclass defines `open`."""

    def load(self, what: Union[Captured, ArtifactFolder], options: RuntimeOptions) -> Session:
        if isinstance(what, Captured):
            raise TypeError(f"{self.name} loads an artifact, not a module")
        artifact = read_artifact(what)
        with explaining("load"):
            return self.open(artifact, options)

    def open(self, artifact: BuiltModel, options: RuntimeOptions) -> Session:
        raise NotImplementedError


class OnnxFamily(ArtifactRuntime):
    """Builds from an ONNX file, which torch exports first unless the user has one."""

    accepts: Tuple[str, ...] = (".onnx",)
    build_packages: Tuple[str, ...] = ("torch", "onnx", "onnxscript")
    through_onnx = True

    @contextmanager
    def exported(
        self, captured: Captured, folder: str, options: RuntimeOptions, steps: StepTimer
    ) -> Iterator[OnnxExport]:
        """The export, in a folder that is removed once the build has succeeded."""
        with self.scratch(folder) as scratch:
            yield export_onnx(captured, scratch, options, steps)

    @contextmanager
    def scratch(self, folder: str) -> Iterator[str]:
        """A folder inside `folder` for intermediate files."""
        scratch = os.path.join(folder, "scratch")
        os.mkdir(scratch)
        yield scratch
        shutil.rmtree(scratch)

    def require_onnx(self) -> None:
        if not is_importable("onnx"):
            raise Unsupported("convert", "reading .onnx files needs onnx: pip install onnx", kind="unavailable")

    def require_unconverted(self, options: RuntimeOptions) -> None:
        """A model file keeps its precision."""
        if options.precision != FP32:
            raise Unsupported("convert", f"a .onnx file runs as it is; it is not converted to {options.precision}")
