"""What runtimes for NVIDIA GPUs say where a part of them is missing, as their real packages behaved without a GPU."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from benchmodels.runtimes import onnxruntime as ort
from benchmodels.runtimes.base import RuntimeOptions, Unsupported
from benchmodels.runtimes.torch_compile import TorchTensorRT

CUDA = RuntimeOptions(device="cuda")


def onnxruntime_with(*providers: str, file: str = "") -> ModuleType:
    """A package that offers them; what onnxruntime-gpu 1.31.1 has besides."""
    module = ModuleType("onnxruntime")
    module.__dict__.update(
        get_available_providers=lambda: list(providers), cuda_version="13.0", __file__=file, preload_dlls=lambda: None
    )
    return module


def test_a_build_for_gpus_without_tensorrt_is_not_to_be_installed_again(monkeypatch):
    there = onnxruntime_with("CUDAExecutionProvider", "CPUExecutionProvider")
    monkeypatch.setattr(ort, "import_module", lambda name: there)
    assert ort.OnnxRuntime().unavailable(CUDA) is None
    assert ort.OnnxRuntimeTensorRT().unavailable(CUDA) == (
        "this build of onnxruntime has no TensorrtExecutionProvider, only CUDAExecutionProvider, CPUExecutionProvider"
    )
    monkeypatch.setattr(ort, "import_module", lambda name: onnxruntime_with("CPUExecutionProvider"))
    assert str(ort.OnnxRuntimeTensorRT().unavailable(CUDA)).endswith("pip install onnxruntime-gpu")


def test_the_missing_library_of_a_provider_is_named(tmp_path):
    (tmp_path / "capi").mkdir()
    library = tmp_path / "capi" / "libonnxruntime_providers_cuda.so"
    library.write_bytes(b"not a library")
    there = onnxruntime_with(file=str(tmp_path / "__init__.py"))
    why = ort._what_is_missing(there, "CUDAExecutionProvider")
    assert why.startswith(f": {library}: ")
    assert why.endswith("it needs CUDA's libraries of the version it was built for (CUDA 13.0)")
    assert ort._what_is_missing(there, "MIGraphXExecutionProvider") == ""


def test_a_missing_library_of_tensorrt_is_told_with_what_brings_it(tmp_path, monkeypatch):
    def load(path: str) -> None:  # as the linker said on an H200 with onnxruntime-gpu 1.31.1
        raise OSError("libnvinfer.so.10: cannot open shared object file: No such file or directory")

    monkeypatch.setattr("ctypes.CDLL", load)
    why = ort._what_is_missing(onnxruntime_with(file=str(tmp_path / "__init__.py")), "TensorrtExecutionProvider")
    assert why.endswith("No such file or directory; it needs TensorRT's libraries: pip install tensorrt")


@pytest.mark.parametrize(
    ("provider", "loads"),
    [("CUDAExecutionProvider", 1), ("TensorrtExecutionProvider", 1), ("CPUExecutionProvider", 0)],
)
def test_libraries_of_cuda_are_loaded_for_nvidia_only_and_quietly(provider, loads, capsys):
    seen: list[int] = []
    there = onnxruntime_with()
    there.__dict__["preload_dlls"] = lambda: (seen.append(1), print("Failed to load libcufft.so.12"))
    ort._load_libraries(there, provider)
    assert (len(seen), capsys.readouterr().out) == (loads, "")
    del there.__dict__["preload_dlls"]  # onnxruntime before 1.21
    ort._load_libraries(there, provider)


def test_torch_tensorrt_without_its_libraries_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "torch_tensorrt.py").write_text(
        "raise Exception('Could not find libnvinfer.so.11\\n  Search paths: []')"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "torch_tensorrt", raising=False)
    with pytest.raises(Unsupported) as failure:
        TorchTensorRT().load(None, CUDA)  # type: ignore[arg-type]
    assert "Could not find libnvinfer.so.11 Search paths: []; it needs TensorRT's libraries" in str(failure.value)
    assert failure.value.kind == "unavailable"
