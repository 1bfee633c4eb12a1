"""Opens a model file with the reader of its format."""

from __future__ import annotations

import os

from benchmodels.files.file_content import SUFFIXES
from benchmodels.files.file_trust import code_in
from benchmodels.files.model_file import ModelFile
from benchmodels.runtimes.base import Unsupported, is_importable


def open_model_file(path: str, trust: bool = False) -> ModelFile:
    """Raises Unsupported if the file cannot be read, or if loading it would run code and it is not trusted."""
    # Only the reader that is used is imported: each imports its runtime, within the time of a launch.
    suffix = os.path.splitext(path)[1].lower()
    if not os.path.isfile(path):
        raise Unsupported("load", f"{path}: no such file", kind="not_found")
    if suffix == ".onnx":
        from benchmodels.files.onnx import OnnxFile

        return OnnxFile(path)
    if suffix == ".pt2":
        _refuse_code(path, trust)
        from benchmodels.files.exported import ExportedFile

        return ExportedFile(path)
    if suffix == ".tflite" and is_importable("ai_edge_litert"):
        from benchmodels.files.tflite import TfliteFile

        return TfliteFile(path)
    if suffix in (".xml", ".tflite"):
        from benchmodels.files.openvino import OpenvinoFile

        return OpenvinoFile(path)
    raise Unsupported("load", f"{path}: not a model file; supported: {', '.join(SUFFIXES)}")


def _refuse_code(path: str, trust: bool) -> None:
    try:
        found = None if trust else code_in(path)
    except ValueError as error:
        raise Unsupported("load", f"{path} is not a torch.export program: {error}", kind="error") from None
    if found is not None:
        raise Unsupported("load", f"loading {path} would run code: {found}", kind="error")
