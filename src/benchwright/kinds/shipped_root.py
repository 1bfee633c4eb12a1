"""Where the suites, benchmarks and specifications lie that come with benchwright."""

from __future__ import annotations

import os.path


def shipped_root() -> str:
    """In an installed package they are inside it; in a checkout, beside its `src`."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    packaged = os.path.join(package, "shipped")
    return packaged if os.path.isdir(packaged) else os.path.dirname(os.path.dirname(package))
