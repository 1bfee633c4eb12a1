"""Which operator an exporter or a compiler complains about."""

from __future__ import annotations

import errno

import pytest

from benchmodels.runtimes.base import Unsupported
from benchmodels.runtimes.parts.problems import explained, explaining, operator_in
from benchwright.kinds.models.corpus.causes import BY_VALUES


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        (
            "No ONNX function found for <OpOverload(op='aten.special_foo', overload='default')>. Failure",
            "aten::special_foo",
        ),
        ("No ONNX function found for aten.foo.default.", "aten::foo"),
        ("Unsupported operator: aten::bar", "aten::bar"),
        ("OpenVINO does not support the following ONNX operations: com.acme.Thing\n", "com::acme"),
        (
            "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Conv(11) node with name 'c'",
            "Conv",
        ),
        ("No Op registered for Wobble with domain_version of 18", "Wobble"),
        ("Fatal error: com.x:Foo(-1) is not a registered function/op", "Foo"),
        ("my::op: attempted to run this operator with Meta tensors, but there was no fake impl", "my::op"),
        (
            "NotImplementedError: Could not run 'quantized::linear' with arguments from the 'Meta' backend",
            "quantized::linear",
        ),
        ("at::native::frame() in c10::Error", None),
        ("division by zero", None),
    ],
)
def test_the_operator_is_found_in_the_message(text, operator):
    assert operator_in(text) == operator


def test_the_cause_is_told_not_the_wrapping():
    def export() -> None:
        try:
            raise ValueError("an odd branch")
        except ValueError as cause:
            raise RuntimeError("Failed to export the model.\nThis is step 1/3") from cause

    with pytest.raises(Unsupported) as failure, explaining("export"):
        export()
    assert (failure.value.stage, failure.value.kind) == ("export", "error")
    assert failure.value.text == "ValueError: an odd branch"


def test_an_unsupported_inside_another_exception_keeps_its_own_words():
    inner = Unsupported("export", "an output is complex")
    outer = RuntimeError("Failed to export the model")
    outer.__cause__ = inner
    assert explained("export", outer) is inner


def test_want_of_memory_or_disk_is_no_fault_of_the_runtime():
    for error in (MemoryError(), OSError(errno.ENOSPC, "full")):
        with pytest.raises(type(error)), explaining("export"):
            raise error


def test_want_of_memory_is_no_unsupported_step_even_inside_of_an_exporters_words():
    def export() -> None:
        try:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 12 bytes")
        except RuntimeError as cause:
            raise ValueError("Failed to export the model") from cause

    with pytest.raises(MemoryError, match="tried to allocate 12 bytes"), explaining("export"):
        export()


@pytest.mark.parametrize(
    "text",
    [
        "Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1)). For more, run with TORCH_LOGS",
        "The tensor has a non-zero number of elements, but its data is not allocated yet. If you're using torch.compile",
    ],
)
def test_code_that_reads_values_of_tensors_is_told_in_plain_words(text):
    told = explained("export", RuntimeError(text))
    assert told.text.startswith(BY_VALUES)  # by which reports group them
    assert told.kind == "unsupported"
    assert "TORCH_LOGS" not in told.text


def test_an_error_of_shapes_is_no_lack_of_the_exporter():
    told = explained("export", RuntimeError("shape '[1, 2]' is invalid for input of size 192"))
    assert (told.kind, told.text) == ("error", "RuntimeError: shape '[1, 2]' is invalid for input of size 192")
