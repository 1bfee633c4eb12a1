"""A real notebook, run by a real kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

LOOP = """\
import sys, time
import benchwright as bw
program = '''
import time
from benchprobe import iterate
for batch in iterate("train", [[0] * 4] * 150, batch_size=4, unit="images"):
    time.sleep(0.02)
'''
run = bw.run([sys.executable, "-c", program], name="loop", base="base")
run
"""
FAILING = 'bw.run([], commands=["false", "true"], base="base")'


def executed(folder: Path, *cells: str) -> tuple[list[dict[str, dict[str, str]]], list[str]]:
    """The outputs of each cell, by their type, and everything that an output was updated with."""
    nbclient, nbformat, _ = (pytest.importorskip(name) for name in ("nbclient", "nbformat", "ipykernel"))
    updates: list[str] = []

    class Client(nbclient.NotebookClient):  # type: ignore[name-defined,misc]
        def process_message(self, message: Any, cell: Any, index: int) -> Any:
            if message["msg_type"] == "update_display_data":
                updates.append(message["content"]["data"]["text/plain"])
            return super().process_message(message, cell, index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = Client(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()
    outputs = [{o["output_type"]: dict(o.get("data", {})) for o in cell["outputs"]} for cell in notebook.cells]
    return outputs, updates


def test_a_run_shows_its_progress_then_its_table_and_picture(tmp_path: Path) -> None:
    (loop, failing, error), updates = executed(
        tmp_path, LOOP, FAILING, "try:\n    bw.load('nothing', base='base')\nexcept Exception as e:\n    print(e)"
    )
    assert any("measuring" in text and "images/s" in text for text in updates), updates
    assert loop["display_data"]["text/html"] == ""  # progress is gone once it is over
    shown = loop["execute_result"]
    assert all(word in shown["text/html"] for word in ("<svg", "<table", "images/s"))
    assert "images/s" in shown["text/plain"]
    assert len(shown["text/plain"]) < 3000
    assert "FAILED" in failing["display_data"]["text/plain"]  # that stays
    assert "failed" in failing["execute_result"]["text/html"]
    assert list(error) == ["stream"]
