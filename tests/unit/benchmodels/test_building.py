"""Why a build failed, in words a user knows instead of those of an exporter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmodels.build.building import EXPORTED, SCRIPTED, WITH_NUMPY, Building
from benchmodels.measure.jobs import MeasureJob
from benchmodels.measure.runtime_options import options_of
from benchmodels.reports import Reports
from benchmodels.runtimes.base import Captured, RuntimeBase, Unsupported
from benchmodels.runtimes.registry import runtime_named
from benchmodels.settings import ModelSettings
from benchprobe.config import VARIABLE

torch: Any = pytest.importorskip("torch")


class Exporter(RuntimeBase):
    """Fails as torch's does."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def build(self, *_: Any) -> None:
        raise self.error

    def load(self, *_: Any) -> Any: ...


class WithNumpy(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Any) -> Any:
        return torch.from_numpy(x.numpy() + 1)


def failure(folder: Path, module: Any, error: Exception) -> str:
    events: list[Any] = []
    settings = ModelSettings(builds=str(folder))
    runtime: Any = Exporter(error)
    Building(settings, runtime, Reports(events.append)).build(Captured(module.eval(), (torch.ones(1, 3),), {}))
    return str(next(event["text"] for event in events if event["event"] == "failure"))


def test_modules_that_cannot_be_exported_are_told_apart(tmp_path: Path) -> None:
    linear = torch.nn.Linear(3, 2)
    strange = Unsupported("export", "AttributeError: '_CachedForward' object has no attribute '__getattr__'")
    assert failure(tmp_path, torch.jit.script(linear), strange) == SCRIPTED
    assert failure(tmp_path, torch.nn.Sequential(torch.jit.script(linear)), strange) == SCRIPTED
    train = Unsupported("export", "NotImplementedError: Calling train() is not supported yet.")
    assert failure(tmp_path, linear, train) == EXPORTED
    assert failure(tmp_path, WithNumpy(), strange).startswith(WITH_NUMPY)
    assert failure(tmp_path, linear, strange) == strange.text


def test_what_was_built_ahead_is_not_built_once_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--rebuild always means one build for a launch, whichever process makes it."""
    made: list[str] = []

    def make(place: Path) -> list[Any]:
        made.append(place.name)
        (place / "model").write_text("x")
        return []

    settings = ModelSettings(identity="x", weights_digest="w", content_digest="c", runtime="onnxruntime")
    settings = settings._replace(builds=str(tmp_path), rebuild="always")
    job = MeasureJob(settings, runtime_named("onnxruntime"), options_of(settings), Reports(lambda event: None))
    assert (job.have_built(make), job.have_built(make), len(made)) == (True, True, 2)
    monkeypatch.setenv(VARIABLE, json.dumps({"built": {"since": 0.0, "beside": 1}}))
    assert (job.have_built(make), len(made)) == (False, 2)
