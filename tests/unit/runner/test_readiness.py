"""What is noted before anything is measured."""

from __future__ import annotations

import pytest
from builders import machine

from benchwright.runner import readiness


@pytest.mark.parametrize(("cores", "text"), [(1, "load 3.0 on 1 core)"), (2, "load 3.0 on 2 cores)")])
def test_a_busy_machine_is_noted_with_its_load(monkeypatch: pytest.MonkeyPatch, cores: int, text: str) -> None:
    monkeypatch.setattr(readiness.os, "getloadavg", lambda: (3.0, 2.0, 1.0))
    monkeypatch.setattr(readiness, "is_this_machine", lambda machine: True)
    (note,) = readiness.busy_notes(machine(cores=cores))
    assert note.text.endswith(text)
    assert readiness.busy_notes(machine(cores=8)) == []
