"""Packages and benchmark folders for tests of environments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from local_wheels import make_packages, offline

from benchwright.core.benchmark import Benchmark, BenchmarkFolder, Environment, Script

MakeBenchmark = Callable[..., Benchmark]


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    make_packages(folder)
    return folder


@pytest.fixture
def only_local_packages(
    packages: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    for name, value in offline(packages, tmp_path_factory.getbasetemp() / "uv-cache").items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def benchmark_of(tmp_path: Path) -> MakeBenchmark:
    """A benchmark whose folder holds `files`."""

    def make(
        name: str = "bench", files: dict[str, str] | None = None, *, args: tuple[str, ...] = (), **fields: Any
    ) -> Benchmark:
        definition = tmp_path / "benchmarks" / fields.pop("folder", name)
        definition.mkdir(parents=True, exist_ok=True)
        for file, text in (files or {}).items():
            (definition / file).write_text(text)
        own = {key: fields.pop(key) for key in ("voir", "prepare_script", "git", "config") if key in fields}
        environment = {"name": fields.pop("install_group", name), "variant": "unpinned", **fields}
        return Benchmark(
            name=name,
            source=f"suite.yaml [{name}]",
            workload=Script(path=str(definition / "main.py"), args=args, cwd=str(definition), python=""),
            environment=Environment(folder=str(definition), **environment),
            folder=BenchmarkFolder(path=str(definition), group=name, **own),
        )

    return make
