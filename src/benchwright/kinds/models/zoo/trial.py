"""Whether the libraries of an environment still import after an install, and what takes the install back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchwright.agent.machine.packages import list_packages
from benchwright.runs.provenance.packages import site_folders

_PATIENCE_S = 300.0
# Some import their parts only when these are used, so their parts are tried.
_TRIED = {
    "numpy": ("numpy",),
    "torch": ("torch",),
    "torchvision": ("torchvision",),
    "torchaudio": ("torchaudio",),
    "transformers": ("transformers.modeling_utils", "transformers.image_utils"),
    "timm": ("timm",),
    "diffusers": ("diffusers.models.modeling_utils",),
    "torch_geometric": ("torch_geometric",),
}
_TRY = """
import importlib, importlib.util, json, sys
for name, modules in json.loads(sys.argv[1]).items():
    if importlib.util.find_spec(name) is None:
        continue
    print(json.dumps([name, "python ended while it was imported"]), flush=True)
    why = None
    try:
        for module in modules:
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(name + "."):
            why = f"{type(error).__name__}: {error}"
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"
    print(json.dumps([name, why]), flush=True)
"""


class TriedEnvironment(msgspec.Struct, frozen=True):
    """At one moment: `packages` with their versions, and which `libraries` import (None) or why not."""

    packages: dict[str, str]
    libraries: dict[str, str | None]


def environment_of(python: str) -> TriedEnvironment:
    """Imports the libraries in a separate process."""
    argv = [python, "-c", _TRY, json.dumps(_TRIED)]
    try:
        output = subprocess.run(
            argv, capture_output=True, text=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL
        ).stdout
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
    found = [json.loads(line) for line in output.splitlines() if line.startswith('["')]
    return TriedEnvironment(list_packages(site_folders(Path(python))), dict(found))


def broken_by(before: TriedEnvironment, after: TriedEnvironment) -> dict[str, str]:
    """Libraries that imported before, or were not there, and do not import now, with the reason."""
    return {name: why for name, why in after.libraries.items() if why and before.libraries.get(name) is None}


class Undoing(msgspec.Struct, frozen=True):
    """How to undo an install: packages to `remove`, and versions to `restore`, such as numpy==2.1.0."""

    remove: tuple[str, ...]
    restore: tuple[str, ...]


def undoing(before: Mapping[str, str], after: Mapping[str, str]) -> Undoing:
    changed = [name for name, version in before.items() if after.get(name) != version]
    return Undoing(
        tuple(name for name in after if name not in before), tuple(f"{name}=={before[name]}" for name in changed)
    )
