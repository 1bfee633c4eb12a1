"""Runs small scripts and gives back what was found in them: here, where torch is imported once, or in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from forked_python import ForkedPython

from benchmodels.discover.model_entries import Call, HookOptions, ModelEntry, Watcher, model_event, uncalled_event
from benchmodels.hooks.imports import ImportWatch
from benchmodels.pytorch.hook import TorchHook
from benchmodels.runtimes.parts.torch_modules import NO_COMPILER, allow_compiling
from benchmodels.settings import settings_from

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "tests" / "programs" / "models"

Event = dict[str, Any]


@pytest.fixture(autouse=True)
def compiler_as_it_was() -> Iterator[None]:
    """A runtime may switch torch's compiler off for the rest of its process, which here is that of other tests, too."""
    _switch_compiler_on()
    yield
    _switch_compiler_on()


def _switch_compiler_on() -> None:
    os.environ.pop(NO_COMPILER, None)
    if "torch._dynamo" in sys.modules:
        allow_compiling()


class Found:
    """The models of one script, and what the hook had to complain about."""

    def __init__(self, models: list[Event], complaints: list[str], lost: bool, names: dict[str, Any]) -> None:
        self.models = models
        self.complaints = complaints
        self.lost = lost
        self.names = names  # the script's own, at its end

    def __getitem__(self, name: str) -> Event:
        (one,) = self.all(name)
        return one

    def all(self, name: str, **where: Any) -> list[Event]:
        return [m for m in self.models if m["class"] == name and all(m[key] == value for key, value in where.items())]

    @property
    def classes(self) -> list[str]:
        return [model["class"] for model in self.models]


def find(
    path: Path, complain: bool = False, on_new: Callable[[ModelEntry, Call], None] | None = None, **settings: Any
) -> Found:
    """Runs the script in this process, under the hook, which is gone afterwards."""
    given = settings_from({"mode": "discover", **settings})
    complaints: list[str] = []
    watcher = Watcher(given.max_shapes, on_new or (lambda entry, call: None))
    hook = TorchHook(
        watcher, HookOptions(str(path), given.max_depth, True, complaints.append, given.weights_in_identity)
    )
    main, before = ModuleType("__main__"), sys.modules["__main__"]
    main.__file__ = str(path)
    imports = ImportWatch(complaints.append)
    hook.install(imports)
    sys.modules["__main__"] = main
    try:
        exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), main.__dict__)
        models = [model_event(entry, watcher.others_of(entry), True) for entry in watcher.reported()]
        models += [uncalled_event(one) for one in hook.uncalled()]
        found = Found(models, complaints, hook.lost(), main.__dict__)
    finally:
        imports.stop()
        hook.uninstall()
        sys.modules["__main__"] = before
    assert complain or complaints == []
    return found


@pytest.fixture(scope="session")
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def found(tmp_path: Path, torch: Any) -> Callable[..., Found]:
    """`found(program, max_depth=1)`: what is in it. Every program gets torch, nn and a tensor x of 3 × 4."""
    numbers = iter(range(1000))

    def run(program: str, **settings: Any) -> Found:
        path = tmp_path / f"script{next(numbers)}.py"
        path.write_text("import torch\nfrom torch import nn\nx = torch.ones(3, 4)\n" + textwrap.dedent(program))
        return find(path, **settings)

    return run


class Ended:
    """A script that ran in a process of its own under `python -m benchmodels`."""

    def __init__(self, done: subprocess.CompletedProcess[str], stream: Path) -> None:
        self.code, self.output, self.errors = done.returncode, done.stdout, done.stderr
        lines = stream.read_text().splitlines() if stream.exists() else []
        self.events: list[Event] = [json.loads(line) for line in lines]
        last = {event["identity"]: event for event in self.all("model")}
        self.models = list(last.values())

    def all(self, kind: str) -> list[Event]:
        return [event for event in self.events if event["event"] == kind]

    def one(self, kind: str) -> Event:
        (event,) = self.all(kind)
        return event


@pytest.fixture
def under_discovery(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., Ended]:
    """`under_discovery(program or path, "--flag", mode=…)`: runs it so, in its own folder.

    `forked`: in a process that has imported torch, where neither its start nor its imports matter.
    """
    numbers = iter(range(1000))

    def run(
        program: str | Path,
        *args: str,
        python: tuple[str, ...] = (sys.executable,),
        plainly: bool = False,
        forked: bool = False,
        stdin: str = "",
        **settings: Any,
    ) -> Ended:
        number = next(numbers)
        path = program if isinstance(program, Path) else tmp_path / "script.py"
        if isinstance(program, str):
            path.write_text(textwrap.dedent(program))
        stream = tmp_path / f"stream{number}.data"
        config = {"stream": str(stream), "warmup": {"steps": 0}, "models": {"mode": "discover", **settings}}
        env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "BENCHPROBE_CONFIG": json.dumps(config)}
        if forked:
            start: ForkedPython = request.getfixturevalue("forked_python")
            return Ended(start.run(str(path), *args, env=env, cwd=path.parent, input=stdin, plainly=plainly), stream)
        module = [] if plainly else ["-m", "benchmodels"]
        command = [*python, *module, str(path), *args]
        done = subprocess.run(
            command, env=env, cwd=path.parent, input=stdin, capture_output=True, text=True, timeout=600
        )
        return Ended(done, stream)

    return run


@pytest.fixture
def found_in(torch: Any) -> Callable[..., Found]:
    """The same for a file."""
    return find


@pytest.fixture(scope="session")
def programs_folder() -> Path:
    return PROGRAMS
