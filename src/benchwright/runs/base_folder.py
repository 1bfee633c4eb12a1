"""The base folder: everything benchwright keeps, in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from benchwright.core.errors import InvalidInput
from benchwright.options.variables import value_of


class BaseFolder:
    """Flat: `runs artifacts builds builds-of-revisions` and, for suites, `data extra cache venv store.db`. Constructing it touches nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"
        self.artifacts = path / "artifacts"
        self.builds = path / "builds"
        self.revisions = path / "builds-of-revisions"

    @staticmethod
    def choose(given: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> BaseFolder:
        """`--base`, else $BENCHWRIGHT_BASE or another tool's, else the user's data folder."""
        if given := given or value_of("BENCHWRIGHT_BASE", environment):
            return BaseFolder(_checked(Path(os.path.abspath(Path(given).expanduser()))))
        home = environment.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
        return BaseFolder(_checked(Path(home) / "benchwright"))


def _checked(path: Path) -> Path:
    """InvalidInput for a path that the files of a run, which are UTF-8, could not name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{str(path)!a} is not UTF-8 text", where="--base", remedy="choose another") from None
    return path
