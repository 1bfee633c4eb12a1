"""benchprobe as a folder of its own, to be put on the path of a measured script without anything else beside it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import benchprobe
from benchwright.domain.errors import CannotMeasure


def probe_folder(artifacts: Path) -> Path:
    """A folder below `artifacts` that holds this version of benchprobe and nothing else; made once for each content."""
    source = Path(benchprobe.__file__).parent
    files = sorted(p for p in source.rglob("*") if p.is_file() and p.suffix in (".py", ".typed"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(source)}\0".encode() + file.read_bytes())
    folder = artifacts / f"benchprobe-{digest.hexdigest()[:16]}"
    if not folder.exists():
        _copy(source, files, folder)
    return folder


def _copy(source: Path, files: list[Path], folder: Path) -> None:
    """Copies aside, then renames, so that a killed benchwright leaves no half of it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".benchprobe-"))
        for file in files:
            target = aside / "benchprobe" / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        aside.chmod(0o755)
        try:
            os.rename(aside, folder)
        except OSError:
            shutil.rmtree(aside)  # another benchwright was quicker: its folder is the same
            if not folder.exists():
                raise
    except OSError as error:
        raise CannotMeasure(f"{folder}: {error.strerror or error}; choose another folder with --base") from error
