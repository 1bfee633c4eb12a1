"""Stand-ins for modules that foreign model scripts import: only in processes that run such a script, if the real ones are missing."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any, Optional, Sequence

PACKAGES = ("mlagility", "turnkeyml")


class CompatFinder:
    """Last on the list of finders, so installed packages take precedence."""

    @staticmethod
    def find_spec(name: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Optional[ModuleSpec]:
        if name not in PACKAGES:
            return None
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
        init = os.path.join(folder, "__init__.py")
        return importlib.util.spec_from_file_location(name, init, submodule_search_locations=[folder])


def install() -> None:
    """From here on `import mlagility` works in this process."""
    if not any(finder is CompatFinder for finder in sys.meta_path):
        sys.meta_path.append(CompatFinder)
