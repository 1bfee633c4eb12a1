"""torchvision and torchaudio for CUDA beside a torch without: seen, and made importable by the package of ours."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchwright.environments.builder import CUDA_BUILDS as PACKAGE
from benchwright.environments.builder import doubtful_packages, lacks_cuda, note_about

TORCH = """
class ops:
    @staticmethod
    def load_library(path):
        if not open(path).read():
            raise OSError(f"Could not load this library: {path}")
class library:
    class Library:
        def __init__(self, *names): defined.append(names)
        def define(self, schema): defined.append(schema.partition("(")[0])
defined = []
"""
TORCHVISION = """
import torch, os
try:
    torch.ops.load_library(os.path.join(os.path.dirname(__file__), "_C.so"))
except OSError:
    if "nms" not in torch.defined:
        raise RuntimeError("operator torchvision::nms does not exist")
"""
LOADING = """
import torch, os
def _load_lib(name):
    torch.ops.load_library(os.path.join(os.path.dirname(__file__), "..", "torchaudio.so"))
    return True
"""


def site(folder: Path, *, compiled: str = "", cuda: str = "None", helped: bool = True) -> Path:
    files = {
        "torch/__init__.py": TORCH,
        "torch/version.py": f"__version__ = '2'\ncuda: Optional[str] = {cuda}\n",
        "torchvision/__init__.py": TORCHVISION,
        "torchvision/_C.so": compiled,
        "torchaudio/__init__.py": "from ._extension.utils import _load_lib\nLOADED = _load_lib('x')\n",
        "torchaudio/_extension/__init__.py": "",
        "torchaudio/_extension/utils.py": LOADING,
        "torchaudio/torchaudio.so": compiled,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    if helped:
        shutil.copy(Path(PACKAGE) / "benchwright_cuda_builds.py", folder)
        (folder / "sitecustomize.py").write_text("import benchwright_cuda_builds\n")  # as the .pth file does
    return folder


def printed(folder: Path, code: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(folder)})
    return done.stdout.strip(), done.stderr


@pytest.mark.parametrize("name", ["torchvision", "torchaudio"])
def test_the_symptom_is_known_by_what_the_interpreter_says(tmp_path: Path, name: str) -> None:
    assert lacks_cuda(printed(site(tmp_path, helped=False), f"import {name}")[1])
    assert not lacks_cuda("ModuleNotFoundError: No module named 'torchvision'")


def test_both_can_be_imported_and_only_what_is_missing_is_defined(tmp_path: Path) -> None:
    code = "import torchvision, torchaudio, torch; print(torch.defined, torchaudio.LOADED)"
    assert printed(site(tmp_path / "a"), code)[0] == "[('torchvision', 'DEF'), 'nms', 'qnms'] False"
    assert printed(site(tmp_path / "b", compiled="loads"), code)[0] == "[] True", "it changes what works by itself"


def test_programs_that_use_neither_import_no_torch(tmp_path: Path) -> None:
    assert printed(site(tmp_path), "import sys; print('torch' in sys.modules)")[0] == "False"


def test_only_beside_a_torch_without_cuda_is_it_worth_trying(tmp_path: Path) -> None:
    assert doubtful_packages(str(site(tmp_path / "a"))) == ["torchvision", "torchaudio"]
    assert doubtful_packages(str(site(tmp_path / "b", cuda="'13.0'"))) == []
    assert doubtful_packages(str(tmp_path)) == []
    assert "torchvision is a CUDA build" in note_about(["torchvision"])
