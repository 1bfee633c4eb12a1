"""A session of ncnn: an extractor for each call."""

from __future__ import annotations

import os
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any, Dict, List, NamedTuple, Sequence

from benchmodels.runtimes.artifact import Artifact, as_type, by_name, in_order
from benchmodels.runtimes.base import FP32, OpTime, Options, Session, Unsupported


class NcnnOutput(NamedTuple):
    """`batch`: which of its dimensions ncnn keeps apart; `dtype` and `shape`: as the model returns it."""

    port: str
    batch: int
    dtype: str
    shape: Sequence[int]


class NcnnSession:
    """A call makes an extractor, gives it the inputs and takes all outputs: there is no single call for that."""

    provider = "CPU"
    precision = FP32
    consumes_inputs = False
    first_run_builds = False

    def __init__(
        self, artifact: Artifact, weights: str, batches: Sequence[int], outputs: Sequence[NcnnOutput], options: Options
    ) -> None:
        self._ncnn: Any = import_module("ncnn")
        self._artifact = artifact
        self._batches = batches
        self._outputs = outputs
        self._net = self._ncnn.Net()
        switch_off_rounding(self._net.opt)
        self._net.opt.use_vulkan_compute = False
        self._net.opt.num_threads = options.threads
        if self._net.load_param(artifact.model) != 0 or self._net.load_model(weights) != 0:
            raise Unsupported("load", f"ncnn cannot load {artifact.model}: its log says why", kind="error")
        self._extractor = self._net.create_extractor
        blobs = [blob.name for blob in self._net.blobs()]
        self._ports = [each.port for each in artifact.inputs]
        self._inputs = [blobs.index(port) for port in self._ports]
        self._wanted = [blobs.index(each.port) for each in outputs]
        self.details: Dict[str, Any] = {
            "threads": self._net.opt.num_threads,
            "wait_policy": os.environ.get("OMP_WAIT_POLICY", "default").lower(),
            "winograd": self._net.opt.use_winograd_convolution,
        }

    def prepare(self, inputs: Any) -> Any:
        arrays = in_order(inputs, self._ports, self._artifact)
        return [
            (blob, self._mat(array, each.dtype, batch))
            for blob, array, each, batch in zip(self._inputs, arrays, self._artifact.inputs, self._batches)
        ]

    def run(self, prepared: Any) -> Any:
        extractor = self._extractor()
        for blob, mat in prepared:
            extractor.input(blob, mat)
        extract = extractor.extract
        return [extract(blob) for blob in self._wanted]

    def outputs(self, result: Any) -> Dict[str, Any]:
        failed = [each.port for each, (code, _) in zip(self._outputs, result) if code != 0]
        if failed:
            raise Unsupported(
                "first_run", f"ncnn could not compute {', '.join(failed)}: its log says why", kind="error"
            )
        values = [_read(mat, each) for each, (_, mat) in zip(self._outputs, result)]
        return by_name(values, [each.port for each in self._outputs], self._artifact)

    def inputs_changed(self, prepared: Any, inputs: Any) -> bool:
        return False  # ncnn copies an input that others hold before it writes to it

    def new_stream(self) -> Session:
        """Extractors of one network may be used by many threads."""
        return NcnnStream(self)

    def profile(self, prepared: Any, calls: int) -> List[OpTime]:
        """ncnn's package does not time its layers, so that there is one row."""
        taken = []
        for _ in range(calls):
            began = perf_counter()
            self.run(prepared)
            taken.append(perf_counter() - began)
        return [OpTime("the runtime", "", median(taken), 1.0)]

    def close(self) -> None:
        self._net = self._extractor = None

    def _mat(self, array: Any, dtype: str, batch: int) -> Any:
        numpy: Any = import_module("numpy")
        value = numpy.asarray(array)
        if not value.size:
            raise Unsupported("first_run", "an input is empty, and ncnn takes no empty arrays")
        if dtype.startswith("int") and (value.max() > 2**31 - 1 or value.min() < -(2**31)):
            raise Unsupported("first_run", "an input has numbers of more than 32 bits, which ncnn does not have")
        own = as_type(value, "int32" if dtype.startswith("int") else "float32")
        return self._ncnn.Mat(own, batch_index=batch).clone()  # before `own` is gone, in whose memory it lies


class NcnnStream:
    """One caller of several; what they share is closed by the first."""

    consumes_inputs = False
    first_run_builds = False

    def __init__(self, owner: NcnnSession) -> None:
        self.provider, self.precision, self.details = owner.provider, owner.precision, owner.details
        self.prepare, self.run, self.outputs = owner.prepare, owner.run, owner.outputs
        self.inputs_changed, self.new_stream, self.profile = owner.inputs_changed, owner.new_stream, owner.profile

    def close(self) -> None:
        pass


def switch_off_rounding(option: Any) -> None:
    """By default ncnn keeps what lies between layers, and weights, in float16 wherever the processor has it."""
    for name in dir(option):
        if name.startswith(("use_fp16_", "use_bf16_", "use_int8_")):
            setattr(option, name, False)


def _read(mat: Any, output: NcnnOutput) -> Any:
    """A copy. ncnn's arrays have at least one dimension, and drop some of size 1."""
    array = as_type(mat.numpy(batch_index=output.batch), output.dtype)
    wanted = [size for size in output.shape if size != 1]
    return array.reshape(output.shape) if [size for size in array.shape if size != 1] == wanted else array
