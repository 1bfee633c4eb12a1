"""Which scripts may begin with torch imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmodels.warm.pages import pages_now, take_over
from benchmodels.warm.scripts import why_cold


def why(folder: Path, source: str) -> str | None:
    script = folder / "script.py"
    script.write_text(source)
    return why_cold(str(script), frozenset(["torch"]))


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nimport os\nos.environ['A'] = 'b'\n",
        '"""About it."""\nfrom __future__ import annotations\nimport os, sys\nN = 3\nfrom torch import nn\n',
        "from mlagility.parser import parse\nimport numpy as np\nfrom transformers import BertModel\nimport torch.nn\n",
    ],
)
def test_one_that_only_imports_before_torch_may(tmp_path, source):
    assert why(tmp_path, source) is None


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os\nos.environ['OMP_NUM_THREADS'] = '1'\nimport torch\n", "line 2 comes before"),
        ("import sys\nsys.path.insert(0, 'x')\nimport torch\n", "line 2 comes before"),
        ("N: int = print()\nimport torch\n", "line 1 comes before"),
        ("if True:\n    import torch\n", "line 1 comes before"),
        ("import sklearn\nimport torch\n", "imports sklearn before torch"),
        ("from . import settings\nimport torch\n", "imports . before torch"),
        ("import mine\nimport torch\n", "imports mine before torch"),
        ("import os\n", "does not import torch"),
        ("import torch\nthis is no Python\n", "cannot be read"),
    ],
)
def test_any_other_may_not(tmp_path, source, reason):
    assert reason in (why(tmp_path, source) or "")


def test_one_beside_a_module_that_torch_may_have_imported_may_not(tmp_path):
    (tmp_path / "json").mkdir()
    assert (
        why(tmp_path, "import torch\n")
        == "json beside the script would be imported in place of the module of that name"
    )


def test_pages_in_memory_are_found_and_can_be_taken_over_again():
    kept = bytearray(b"x" * (64 << 20))
    pages = pages_now()
    assert sum(length for _, length in pages.written) > len(kept)
    assert sum(length for _, length in pages.read) > 1 << 20  # of the interpreter itself
    take_over(pages)
    assert kept.count(b"x") == 64 << 20
