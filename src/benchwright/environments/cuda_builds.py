"""torchvision and torchaudio that are built for CUDA in an environment whose torch is not: who they are, and what helps."""

from __future__ import annotations

import os
import re

PACKAGE = os.path.join(os.path.dirname(__file__), "compat_modules", "cuda_builds")  # makes them importable all the same
_NAMES = ("torchvision", "torchaudio")
_SYMPTOM = re.compile(r"operator torchvision::\w+ does not exist|Could not load this library: .*torchaudio")
_NO_CUDA = re.compile(r"^cuda\b[^=\n]*=\s*None", re.MULTILINE)


def doubtful_packages(site: str) -> list[str]:
    """Those in `site` that may not load, because the torch there has no CUDA."""
    try:
        with open(os.path.join(site, "torch", "version.py"), encoding="utf-8") as file:
            if _NO_CUDA.search(file.read()) is None:
                return []
    except OSError:
        return []
    return [name for name in _NAMES if os.path.isdir(os.path.join(site, name))]


def lacks_cuda(output: str) -> bool:
    """From what the interpreter printed when it tried to import one."""
    return _SYMPTOM.search(output) is not None


def note_about(packages: list[str]) -> str:
    names = " and ".join(packages)
    are, them = ("is a CUDA build", "it") if len(packages) == 1 else ("are CUDA builds", "them")
    return (
        f"{names} {are}, and this torch is not: benchwright-cuda-builds lets {them} be imported; "
        "what needs compiled parts, such as detection operators, does not work"
    )
