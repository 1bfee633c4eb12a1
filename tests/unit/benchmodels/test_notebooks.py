"""Notebooks as scripts: which lines run, which are left out, and where they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmodels.notebooks import CellPlace, NotebookScript, read_notebook


def notebook_of(*cells: str | tuple[str, str]) -> bytes:
    body: list[dict[str, Any]] = []
    for cell in cells:
        kind, source = cell if isinstance(cell, tuple) else ("code", cell)
        body.append({"cell_type": kind, "source": source.splitlines(keepends=True), "metadata": {}})
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": body}).encode()


def read(*cells: str | tuple[str, str]) -> NotebookScript:
    return read_notebook(notebook_of(*cells))


def test_code_cells_are_one_script_and_lines_keep_their_cells() -> None:
    found = read("a = 1", ("markdown", "# Title"), "b = a\nc = b")
    assert found.source == "a = 1\nb = a\nc = b\n"
    assert [found.place(line) for line in (1, 2, 3)] == [CellPlace(1, 1), CellPlace(3, 1), CellPlace(3, 2)]
    assert found.skipped == ()


@pytest.mark.parametrize(
    ("cell", "runs", "skipped"),
    [
        ("!pip install torch\nx = 1", "pass\nx = 1\n", ("cell 1, line 1 (!pip install torch)",)),
        ("%matplotlib inline\nx = 1", "pass\nx = 1\n", ("cell 1, line 1 (%matplotlib inline)",)),
        ("if True:\n    !ls\n    y = 2", "if True:\n    pass\n    y = 2\n", ("cell 1, line 2 (!ls)",)),
        ("%%bash\nls\nrm x", "\n\n\n", ("cell 1 (%%bash)",)),
        ("%%time\nx = 1", "\nx = 1\n", ()),
        ("%time x = f(1)", "x = f(1)\n", ()),
        ("print?", "pass\n", ("cell 1, line 1 (print?)",)),
        ('s = """\n!not a command\n%nor a magic\n"""', 's = """\n!not a command\n%nor a magic\n"""\n', ()),
        ("x = 7 \\\n% 2", "x = 7 \\\n% 2\n", ()),
    ],
)
def test_what_only_ipython_can_run_is_left_out_and_told(cell: str, runs: str, skipped: tuple[str, ...]) -> None:
    found = read(cell)
    assert (found.source, found.skipped) == (runs, skipped)


def test_a_value_that_only_ipython_can_make_is_refused_with_its_place() -> None:
    with pytest.raises(ValueError, match=r"cell 2, line 2: only IPython can run '!ls', whose value is used"):
        read("a = 1", "b = 2\nfiles = !ls")


@pytest.mark.parametrize("content", [b"no json", b"[]", b'{"worksheets": []}'])
def test_what_is_no_notebook_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a notebook"):
        read_notebook(content)


def test_models_of_a_notebook_are_found_and_named_by_cell(under_discovery: Any, tmp_path: Path) -> None:
    model = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.l = nn.Linear(4, 2)\n    def forward(self, x):\n        return self.l(x)"
    cells = (
        "!pip install torch\nimport torch\nfrom torch import nn",
        ("markdown", "text"),
        model,
        "net = Net()\nnet(torch.ones(3, 4))",
    )
    (tmp_path / "nb.ipynb").write_bytes(notebook_of(*cells))
    ended = under_discovery(tmp_path / "nb.ipynb", forked=True)
    (net,) = ended.models
    assert net["place"] == {"file": str(tmp_path / "nb.ipynb"), "cell": 4, "line": 2}
    assert net["made_at"] == {"file": str(tmp_path / "nb.ipynb"), "cell": 4, "line": 1}
    assert "cell 1, line 1 (!pip install torch)" in ended.one("message")["text"]
    (tmp_path / "same.py").write_text("\n".join(cell for cell in cells if isinstance(cell, str)).replace("!pip", "#"))
    assert under_discovery(tmp_path / "same.py", forked=True).models[0]["identity"] == net["identity"]
