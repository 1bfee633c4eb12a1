"""Small models, and calls of them as they are written by hand for each runtime."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from benchmodels.runtimes.base import Captured


def model_named(name: str) -> Captured:
    import torch
    from torch import nn

    torch.manual_seed(0)
    if name == "mlp":
        layers = [nn.Linear(256, 256), nn.ReLU()] * 2 + [nn.Linear(256, 256)]
        return Captured(nn.Sequential(*layers).eval(), (torch.randn(32, 256),), {}, ("x",))
    layers = []
    for size, to in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(size, to, 3, padding=1), nn.BatchNorm2d(to), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 64, 10))
    return Captured(model.eval(), (torch.randn(1, 3, 64, 64),), {}, ("x",))


def native_call(name: str, session: Any, prepared: Any) -> Callable[[], Any]:
    """The runtime's own call, as it is written by hand."""
    if name == "onnxruntime":
        run, feeds = session._session.run, prepared
        if session.provider == "CPUExecutionProvider":
            return lambda: run(None, feeds)
    if name == "openvino":
        session.run(prepared)  # sets the inputs
        infer = session._request.infer
        return lambda: infer(share_outputs=True)
    if name == "executorch":
        method = session._method
        return lambda: method(prepared, False)
    if name == "iree":  # what lies on its device is the session's, which releases it when it is closed
        invoke, function = session._invoke, session._function
        return lambda: invoke(function, prepared.arguments, session._results)
    if name == "mnn":
        forward = session._module.onForward
        return lambda: forward(prepared)
    if name == "ncnn":
        [(input_blob, mat)], [output_blob] = prepared, session._wanted
        return lambda: extracted(session._net, input_blob, mat, output_blob)
    if name == "tvm":
        main = session._main
        return lambda: main(*prepared)
    inner = getattr(session, "_inner", session)
    call, args = inner._call, prepared.args
    if inner._device.type == "cpu":
        return lambda: call(*args)
    import torch

    def call_and_wait() -> Any:
        result = call(*args)
        torch.cuda.synchronize()
        return result

    return call_and_wait


def extracted(net: Any, input_blob: Any, mat: Any, output_blob: Any) -> Any:
    """A call of ncnn."""
    extractor = net.create_extractor()
    extractor.input(input_blob, mat)
    return extractor.extract(output_blob)


def loaded_by_hand(name: str, folder: str, captured: Captured, threads: int) -> Callable[[], Any] | None:
    """The same model loaded without us; None: not done for this runtime."""
    array = captured.args[0].numpy()
    if name == "torch-eager":
        import copy

        import torch

        with torch.inference_mode(False):  # a copy made inside of it would be faster than what people have
            module, x = copy.deepcopy(captured.module), captured.args[0].clone()
        return lambda: module(x)
    if name == "onnxruntime":
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(f"{folder}/model.onnx", settings, providers=["CPUExecutionProvider"])
        feeds = {session.get_inputs()[0].name: array}
        return lambda: session.run(None, feeds)
    if name == "openvino":
        import openvino

        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": str(threads),
            "INFERENCE_PRECISION_HINT": "f32",
        }
        request = openvino.Core().compile_model(f"{folder}/model.xml", "CPU", settings).create_infer_request()
        request.set_input_tensor(openvino.Tensor(array))
        return lambda: request.infer(share_outputs=True)
    if name == "executorch":  # with the process's threads, which our session has set
        from executorch.runtime import Runtime

        program = Runtime.get().load_program(f"{folder}/model.pte")
        forward, inputs = program.load_method("forward"), [captured.args[0]]
        return lambda: forward.execute(inputs)
    if name == "mnn":
        from MNN import expr, nn

        settings = {"backend": "CPU", "numThread": threads, "precision": "high"}
        manager = nn.create_runtime_manager((settings,))
        module = nn.load_module_from_file(f"{folder}/model.mnn", [], [], runtime_manager=manager)
        given = expr.const(array, list(array.shape), expr.NCHW, expr.float)
        return lambda: module.onForward([given])
    if name == "ncnn":
        import ncnn

        net = ncnn.Net()
        net.opt.num_threads = threads
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.load_param(f"{folder}/model.param")
        net.load_model(f"{folder}/model.bin")
        mat = ncnn.Mat(array, batch_index=0 if array.ndim > 2 else 233).clone()
        return lambda: extracted(net, "in0", mat, "out0")
    if name == "tvm":
        import tvm
        from tvm import relax

        machine = relax.VirtualMachine(tvm.runtime.load_module(f"{folder}/model.so"), tvm.cpu())
        main, given = machine["main"], tvm.runtime.tensor(array)
        return lambda: main(given)
    return None
