"""Environments for the tools we measure ourselves against: outside the project, made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def peer_environment(name: str, requirements: list[str]) -> Path:
    """A virtual environment with `requirements`, kept in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(home) / "benchwright-performance" / name
    ready = folder / "ready"
    wanted = "\n".join(requirements)
    if not ready.exists() or ready.read_text() != wanted:
        print(f"setting up the peers {', '.join(requirements)} in {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run(
            [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *requirements],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        ready.write_text(wanted)
    return folder
