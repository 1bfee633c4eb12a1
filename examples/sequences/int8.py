"""A build sequence: linear layers in 8 bits, by ONNX Runtime's own quantisation.

bw run model.py --runtime torch-eager,onnxruntime --sequence-file int8.py
"""

import os

import onnx
from onnxruntime.quantization import quantize_dynamic


def without_dropout(model):
    """Before the export a function gets the module, and returns the one to export."""
    for part in model.modules():
        if type(part).__name__ == "Dropout":
            part.p = 0.0
    return model


def without_shapes(path):
    """After it, a function gets the path of the ONNX file, and returns that of the next: quantising transposes weights."""
    model = onnx.load(path)
    del model.graph.value_info[:]
    onnx.save(model, path)
    return path


def quantised(path):
    new = os.path.join(os.path.dirname(path), "int8.onnx")
    quantize_dynamic(path, new)
    return new


SEQUENCE = [without_dropout, "export", without_shapes, quantised]
