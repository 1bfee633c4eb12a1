"""Progress below a notebook's cell: an output that is updated in its place. IPython is used if it is there, never needed."""

from __future__ import annotations

import html
import importlib
import sys
from collections.abc import Sequence
from typing import Any

_STYLE = "margin:0;line-height:1.35;font-size:13px;background:none;color:inherit"
_MOST_KEPT = 200


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook. One is not imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class NotebookPanel:
    """A `Surface`: lines that stay, and the panel below them. If the front end is gone, the work goes on without it."""

    live = True
    size = (100, 24)

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._drawn: list[str] = []
        self._handle: Any = None  # of IPython

    def draw(self, lines: Sequence[str]) -> None:
        if list(lines) != self._drawn:
            self._drawn = list(lines)
            self._show()

    def say(self, text: str) -> None:
        self._kept = [*self._kept, text][-_MOST_KEPT:]
        self._show()

    def echo(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def close(self) -> None:
        self._drawn = []
        if self._handle is not None:
            self._show()

    def _show(self) -> None:
        display = importlib.import_module("IPython.display").display
        text = "\n".join([*self._kept, *self._drawn])
        shown = {"text/plain": text, "text/html": f'<pre style="{_STYLE}">{html.escape(text)}</pre>' if text else ""}
        try:
            if self._handle is None:
                self._handle = display(shown, raw=True, display_id=True)
            else:
                self._handle.update(shown, raw=True)
        except Exception:  # whatever a front end does wrong, the run is worth more than its progress
            self._kept, self._drawn = [], []
