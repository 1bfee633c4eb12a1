"""What an exception or the end of a child means."""

from __future__ import annotations

import errno
import signal
from pathlib import Path

import pytest

from benchmodels import failures
from benchmodels.build import process as build_process
from benchmodels.failures import failure_of, failure_of_ending, kernel_ooms
from benchmodels.reports import Reports
from benchmodels.runtimes.base import Unsupported
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import ModelSettings


class OutOfMemoryError(RuntimeError):
    """As torch.cuda has it."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("no"),
        OutOfMemoryError("CUDA"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1152 bytes"),
        RuntimeError("[ONNXRuntimeError] : 6 : Failed to allocate memory for requested buffer of size 12"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_want_of_memory_is_known_by_its_words(error: Exception) -> None:
    assert failure_of(error).kind == "out_of_memory"


def test_other_errors_keep_their_words() -> None:
    assert failure_of(ValueError("bad\nvalue")) == ("error", "ValueError: bad\nvalue", None, None)
    assert failure_of(OSError(errno.ENOSPC, "x", "/a/b")).text == "No space left on device: /a/b"
    assert failure_of(Unsupported("export", "no way", "aten::foo")) == ("unsupported", "no way", "export", "aten::foo")
    assert len(failure_of(ValueError("x" * 10_000)).text) <= failures.MAX_TEXT


def test_the_end_of_a_child_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure_of_ending(3, "export", 0) == (
        "crashed",
        "the build process ended with code 3 in export",
        "export",
        None,
    )
    assert "SIGSEGV" in failure_of_ending(-signal.SIGSEGV, "convert", 0).text
    monkeypatch.setattr(failures, "kernel_ooms", lambda: 5)
    assert failure_of_ending(-signal.SIGKILL, "export", 4).kind == "out_of_memory"
    assert failure_of_ending(-signal.SIGKILL, "export", 5).kind == "crashed"


def test_the_kernel_tells_how_many_it_has_ended(tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text("nr_free_pages 12\noom_kill 3\nother 1\n")
    assert kernel_ooms(str(tmp_path / "vmstat")) == 3
    assert kernel_ooms(str(tmp_path / "absent")) is None


def test_an_exception_of_onnxruntime_may_be_want_of_memory() -> None:
    kind = type("RuntimeException", (Exception,), {"__module__": "onnxruntime.capi.onnxruntime_pybind11_state"})
    assert failure_of(kind("Failed to allocate memory for requested buffer of size 12")).kind == "out_of_memory"
    assert failure_of(kind("Invalid rank")).kind == "error"


@pytest.mark.parametrize(
    ("full", "said", "told"),
    [
        (True, "basic_ios::clear: iostream error", True),
        (False, "No space left on device", True),
        (False, "basic_ios::clear: iostream error", False),
    ],
)
def test_a_full_disk_is_named_whatever_the_exporter_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool, said: str, told: bool
) -> None:
    monkeypatch.setattr(build_process, "has_room", lambda folder: not full)
    failed = build_process.BuildFailed(failures.ModelFailure("error", said, "convert"))
    text = build_process._with_want_of_room(failed, str(tmp_path / "entry")).text
    assert said in text
    assert (f"no space left in {tmp_path}" in text) == told


def test_a_build_on_a_full_disk_is_none_even_if_nobody_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = pytest.importorskip("benchmodels.build.builder")
    monkeypatch.setattr(builder, "has_room", lambda folder: False)
    reports = Reports(lambda event: None)
    settings = ModelSettings(identity="x", builds=str(tmp_path))
    with pytest.raises(OSError, match="No space left"):
        builder.ModelBuilder(settings, runtime_named("openvino"), reports)._write({}, None, None)
    assert not list(tmp_path.iterdir())


def test_room_is_what_the_disk_says(tmp_path: Path) -> None:
    assert failures.has_room(str(tmp_path / "not there"))
    assert failures.has_room(str(tmp_path))
