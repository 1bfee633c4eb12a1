"""Paths as benchfiles use them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PosixPath


class XPath(PosixPath):
    """A path with a few actions of its own."""

    def rm(self) -> None:
        if self.is_dir() and not self.is_symlink():
            shutil.rmtree(self)
        else:
            self.unlink()

    def copy(self, target: str | Path) -> XPath:
        (shutil.copytree if self.is_dir() else shutil.copy)(self, target)
        return XPath(target)

    def merge_into(self, target: str | Path) -> None:
        shutil.copytree(self, target, dirs_exist_ok=True)

    def sub(self, pattern: str, replacement: str) -> None:
        self.write_text(re.sub(pattern, replacement, self.read_text()))
