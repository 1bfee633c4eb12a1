"""Why a build failed, in words a user knows instead of those of an exporter."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmodels.build.builder import EXPORTED, SCRIPTED, WITH_NUMPY, ModelBuilder
from benchmodels.measure.jobs import MeasureJob
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
    ModelBuilder(settings, runtime, Reports(events.append)).build(Captured(module.eval(), (torch.ones(1, 3),), {}))
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
    job = MeasureJob(settings, runtime_named("onnxruntime"), Reports(lambda event: None))
    assert (job.have_built(make), job.have_built(make), len(made)) == (True, True, 2)
    monkeypatch.setenv(VARIABLE, json.dumps({"built": {"since": 0.0, "beside": 1}}))
    assert (job.have_built(make), len(made)) == (False, 2)


WARM = """
import sys, types
import benchmodels.warm.pages
from benchmodels.build.process import BuildFailed, build_in_child
from benchmodels.settings import ModelSettings
sys.modules["of_the_parent"] = types.ModuleType("of_the_parent")
script, folder, on_device = sys.argv[1:]
settings = ModelSettings(runtime="onnxruntime", identity="12345678")
try:
    build_in_child(settings, script, [], folder, None, on_device=on_device == "True")
except BuildFailed:
    pass
"""


@pytest.mark.parametrize("on_device", [False, True])
def test_a_build_that_uses_the_gpu_is_no_fork_of_a_process_that_asked_the_driver(
    tmp_path: Path, on_device: bool
) -> None:
    """CUDA does not start in such a fork; any other build saves itself the import of torch."""
    script = tmp_path / "model.py"
    script.write_text('import sys\nprint("forked:", "of_the_parent" in sys.modules)\nraise SystemExit(3)\n')
    command = [sys.executable, "-c", WARM, str(script), str(tmp_path), str(on_device)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"forked: {not on_device}" in done.stdout
