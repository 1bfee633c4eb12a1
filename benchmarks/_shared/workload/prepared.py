"""Folders of data that are made once: complete, or not there."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MARK = "made.json"


def made_once(folder: Path, how: Mapping[str, Any], make: Callable[[Path], None]) -> Path:
    """`folder`, as `make` fills it. Made now unless it was made before, in just this way (`how`)."""
    if is_made(folder, how):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        make(aside)
        (aside / MARK).write_text(json.dumps(dict(how), sort_keys=True))
        if folder.exists() and not is_made(folder, how):
            shutil.rmtree(folder)
        try:
            aside.rename(folder)
        except OSError:
            if not is_made(folder, how):  # else another process was faster, and its folder is as good
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def is_made(folder: Path, how: Mapping[str, Any]) -> bool:
    try:
        return bool(json.loads((folder / MARK).read_text()) == json.loads(json.dumps(dict(how))))
    except (OSError, ValueError):
        return False


def needed(folder: Path) -> Path:
    """`folder`, which prepare.py was to make. Ends the program if it did not."""
    if not (folder / MARK).exists():
        raise SystemExit(f"{folder}: nothing was prepared there; run prepare.py with the same arguments")
    return folder
