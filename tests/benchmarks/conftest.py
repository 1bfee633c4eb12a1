"""What holds for all tests of shipped benchmarks."""

from __future__ import annotations

import pytest
from shipped_benchmarks import load

FEW = 10  # steps in which a loss must fall; by itself a check takes thirty


@pytest.fixture(autouse=True)
def few_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long tests check as a user does."""
    pytest.importorskip("torch")
    if request.node.get_closest_marker("long") is None:
        load("vision")  # puts what benchmarks share on the path
        from workload import training

        monkeypatch.setattr(training, "CHECK_STEPS", FEW)
