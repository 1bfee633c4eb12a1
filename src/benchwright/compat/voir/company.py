"""Our voirfile, for scripts that voir runs and that are measured together with others or may have several ranks."""

from __future__ import annotations

import os
from pathlib import Path

STREAM = "voir"  # the name of its stream dialect
_VARIABLE = "VOIRFILE"
_NAME = "benchwright_voirfile.py"


def own_voirfile(folder: str) -> tuple[dict[str, str | None], dict[str, str]]:
    """The variable that names it, and the file, in `folder`; neither if the user has named one."""
    path = os.path.join(folder, _NAME)
    if _VARIABLE in os.environ or any(c.isspace() for c in path):  # voir splits the variable at spaces
        return {}, {}
    return {_VARIABLE: path}, {path: Path(__file__).with_name("voirfile.py").read_text(encoding="utf-8")}
