"""What `give` accepts, and when it is read."""

from __future__ import annotations

import math
from typing import Any

import pytest

from benchprobe.stream.values import Deferred, accept, settle


def taken(**values: Any) -> tuple[dict[str, Any], list[str]]:
    complaints: list[str] = []
    accepted, _ = accept(values, lambda name, text: complaints.append(f"{name}: {text}"))
    return accepted, complaints


def test_plain_numbers_and_texts_are_taken_as_they_are():
    values = {"a": 1, "b": 2.5, "c": True, "d": "x", "e": None, "f": math.inf}
    assert taken(**values) == (values, [])


def test_numpy_numbers_become_plain_ones():
    numpy = pytest.importorskip("numpy")
    accepted, complaints = taken(a=numpy.float32(0.5), b=numpy.array([3]), c=numpy.int64(4), d=numpy.zeros(2))
    assert accepted == {"a": 0.5, "b": 3, "c": 4}
    assert [type(v) for v in accepted.values()] == [float, int, int]
    assert complaints == ["d: it holds more than one number; give its mean or sum"]


def test_a_tensor_of_the_cpu_is_read_at_once():
    torch = pytest.importorskip("torch")
    loss = torch.tensor(0.25, requires_grad=True) * 1
    accepted, complaints = taken(loss=loss, two=torch.zeros(2))
    assert accepted == {"loss": 0.25}
    assert complaints == ["two: a tensor of 2 numbers; give its mean or sum"]


def test_a_thing_that_is_no_number_is_told():
    accepted, complaints = taken(a=object(), b=[1], c=1j)
    assert accepted == {}
    assert len(complaints) == 3


def on_device(torch: Any, number: float) -> Any:
    """As if it were on a device; how torch counts its changes is the same."""
    tensor = torch.tensor(number)
    return Deferred(tensor.detach(), tensor._version), tensor


def test_values_of_a_device_are_read_together_later():
    torch = pytest.importorskip("torch")
    complaints: list[str] = []
    waiting = [{"loss": on_device(torch, 0.5)[0], "lr": 0.1}, {"loss": on_device(torch, 0.75)[0]}]
    settle(waiting, lambda name, text: complaints.append(name))
    assert waiting == [{"loss": 0.5, "lr": 0.1}, {"loss": 0.75}]
    assert complaints == []


def test_a_tensor_changed_in_place_is_told_and_not_recorded():
    torch = pytest.importorskip("torch")
    complaints: list[str] = []
    deferred, tensor = on_device(torch, 0.5)
    tensor.mul_(2)
    waiting = [{"loss": deferred, "lr": 0.1}]
    settle(waiting, lambda name, text: complaints.append(f"{name}: {text}"))
    assert waiting == [{"lr": 0.1}]
    assert complaints[0].startswith("loss: the tensor was changed in place")


def test_a_tensor_that_cannot_be_read_is_told():
    class Broken:
        def item(self) -> float:
            raise RuntimeError("device lost")

    complaints: list[str] = []
    values, _ = accept({"loss": Broken()}, lambda name, text: None)
    settle([values], lambda name, text: complaints.append(text))
    assert complaints == ["RuntimeError: device lost"]


def test_given_values_of_every_kind_reach_the_stream(measured_with_torch):
    record = measured_with_torch("""
        import torch, numpy
        from benchprobe import iterate, give
        total = torch.zeros(())
        for i in iterate("train", range(300)):
            total += 1
            give(loss=total)
            give(text="é", whole=numpy.int32(i), nothing=None, bad=torch.zeros(3))
        give(loss=float("nan"))
    """)
    assert record.given("loss") == [(i, i + 1.0) for i in range(300)]
    assert record.given("whole") == [(i, i) for i in range(300)]
    assert record.given("text")[0] == (0, "é")
    assert record.messages() == "'bad' was not recorded: a tensor of 3 numbers; give its mean or sum"
    assert math.isnan(record.one("give")["values"]["loss"])


def test_what_another_framework_holds_on_a_device_is_read_after_the_steps(measured):
    record = measured(
        """
        from benchprobe import iterate, give
        class Array:
            size = 1
            def __init__(self, number): self.number = number
            def item(self):
                assert not in_the_step
                return self.number
        give(x=Array(7.0))
        for i in iterate("train", range(100)):
            in_the_step = True
            give(loss=Array(i / 2))
            in_the_step = False
        give(x=Array(8.0))
        in_the_step = False
    """.replace("give(x=Array(7.0))", "in_the_step = False; give(x=Array(7.0))")
    )
    assert record.given("loss") == [(i, i / 2) for i in range(100)]
    assert [e["values"]["x"] for e in record.all("give")] == [7.0, 8.0]
    assert record.messages() == ""


def test_a_number_that_no_float_can_hold_is_left_out_and_told():
    accepted, complaints = taken(x=2**1024, y=-(10**400), big=10**20, edge=2**63 - 1)
    assert accepted == {"big": 1e20, "edge": 2**63 - 1}
    assert [type(v) for v in accepted.values()] == [float, int]
    assert [c.partition(":")[0] for c in complaints] == ["x", "y"]
    assert all("too large" in c for c in complaints)


def test_half_a_character_in_a_name_or_a_text_is_left_out_and_told():
    accepted, complaints = taken(**{"na\ud800me": 1.0, "text": "a\udfff", "é": 2.0, "fine": "né"})
    assert accepted == {"é": 2.0, "fine": "né"}
    assert len(complaints) == 2
    "".join(complaints).encode()  # what is told of them can be written itself


def test_subclasses_of_plain_types_are_taken_as_plain():
    class Text(str):
        pass

    class Number(int):
        pass

    accepted, _ = taken(a=Text("x"), b=Number(3), c=Number(10**400))
    assert [(type(v), v) for v in accepted.values()] == [(str, "x"), (int, 3)]
