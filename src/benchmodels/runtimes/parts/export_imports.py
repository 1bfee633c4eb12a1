"""Imports what an export to ONNX needs, for processes that are forked later: that takes longer than to export a small model."""

import importlib
from contextlib import suppress

for name in ("torch.export", "torch._dynamo", "onnxscript.optimizer", "onnxscript.function_libs.torch_lib.ops"):
    with suppress(ImportError):  # the export itself says what is missing
        importlib.import_module(name)
