"""`make without-compat`: a copy of the packages for $PYTHONPATH that has neither the folder compat nor its entry points.

All processes of a test find this copy first, so nothing has to be switched off: what the core needs of compat is missed.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHIPPED = ("benchmarks", "suites", "specifications", "corpora")
_IMPORTS = re.compile(r"^\s*(?:from|import) benchwright\.compat\b", re.MULTILINE)


def copy_without_compat(folder: Path) -> None:
    """Fills `folder` anew."""
    shutil.rmtree(folder, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", folder, ignore=ignore)
    shutil.rmtree(folder / "benchwright" / "compat")
    for name in SHIPPED:
        shutil.copytree(ROOT / name, folder / "benchwright" / "shipped" / name, ignore=ignore)
    installed = importlib.metadata.distribution("benchwright")
    metadata = folder / f"benchwright-{installed.version}.dist-info"
    metadata.mkdir()
    for name in ("METADATA", "entry_points.txt"):
        lines = (installed.read_text(name) or "").splitlines(keepends=True)
        (metadata / name).write_text("".join(line for line in lines if "benchwright.compat" not in line))


def imports_compat(test: Path) -> bool:
    """Whether a file of tests cannot even be imported without compat."""
    return test.suffix == ".py" and _IMPORTS.search(test.read_text(encoding="utf-8")) is not None


if __name__ == "__main__":
    copy_without_compat(Path(sys.argv[1]))
