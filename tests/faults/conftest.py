"""What several tests of faults need."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB; needs the right to mount one."""
    place = tmp_path / "small"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(place)], capture_output=True)
    if made.returncode:
        pytest.skip("cannot mount a small file system here: needs root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)
