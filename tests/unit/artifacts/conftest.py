from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bad_server import BadServer
from fetching import QUICK, Heard

from benchwright.artifacts.cache import ArtifactCache


@pytest.fixture
def server() -> Iterator[BadServer]:
    with BadServer() as started:
        yield started


@pytest.fixture
def cache(tmp_path: Path) -> ArtifactCache:
    return ArtifactCache(tmp_path / "cache", limits=QUICK)


@pytest.fixture
def heard() -> Heard:
    return Heard()
