"""The package is importable in the processes that its tests start, as it is in theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SOURCE), prepend=os.pathsep)
