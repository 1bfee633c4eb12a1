"""Which model runtimes a Python has, by the packages on its path: none of them is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable

from benchwright.agent.machine.packages import list_packages
from benchwright.core.node.checkup import Interpreter

# What a runtime is called → the packages that bring it, the most telling first.
RUNTIMES = {
    "torch": ("torch",),
    "onnxruntime": ("onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-rocm", "onnxruntime"),
    "openvino": ("openvino",),
    "tensorrt": ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
    "jax": ("jax",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"),
    "litert": ("ai-edge-litert", "tflite-runtime"),
    "executorch": ("executorch",),
    "iree": ("iree-base-runtime",),
    "torch-xla": ("torch-xla",),
    "mxnet": ("mxnet", "mxnet-cu112"),
    "paddle": ("paddlepaddle", "paddlepaddle-gpu"),
    "tvm": ("apache-tvm", "tvm"),
    "ncnn": ("ncnn",),
    "mnn": ("mnn",),
    "llama.cpp": ("llama-cpp-python",),
    "vllm": ("vllm",),
}
_QUESTION = "import json,sys; print(json.dumps([sys.executable, list(sys.version_info[:3]), sys.path]))"
_PATIENCE_S = 10.0


def find_runtimes(path_entries: Iterable[str]) -> dict[str, str]:
    """Runtime → version, for the folders of a Python's path."""
    packages = list_packages(path_entries)
    found = {}
    for runtime, names in RUNTIMES.items():
        version = next((packages[name] for name in names if name in packages), None)
        if version is not None:
            found[runtime] = version
    return found


def own_interpreter() -> Interpreter:
    """The Python that benchwright runs on."""
    return Interpreter(
        role="benchwright's own",
        executable=sys.executable,
        version="{}.{}.{}".format(*sys.version_info[:3]),
        runtimes=find_runtimes(sys.path),
    )


def ask_interpreter(program: str, role: str) -> Interpreter:
    """A Python that is asked for its path; `program` may be a shim, so only starting it tells which one it is."""
    try:
        done = subprocess.run(
            [program, "-c", _QUESTION], capture_output=True, text=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL
        )
        executable, version, path = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Interpreter(role=role, executable=program, trouble=f"it does not start: {error}")
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return Interpreter(role=role, executable=program, trouble=f"it does not start: {last[0]}")
    # The first entry is the current folder, which a script elsewhere would not have.
    return Interpreter(
        role=role, executable=executable, version=".".join(map(str, version)), runtimes=find_runtimes(path[1:])
    )
