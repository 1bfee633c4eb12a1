"""A dialect of specifications that bring scripts of their own, and count on plain messages of programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchwright.kinds.spec.spec_test import SpecTest


class BenchHouseDialect:
    """`{HOUSE_SCRIPTS}/check.py` in a command is the file of this package."""

    def folders(self) -> Mapping[str, str]:
        return {"HOUSE_SCRIPTS": str(Path(__file__).parent)}

    def variables(self, test: SpecTest) -> Mapping[str, str]:
        return {"LC_ALL": "C"}

    def command(self, test: SpecTest) -> str | None:
        """Its program takes the inputs of a test as words."""
        if test.framework != "house":
            return None
        return " ".join(["{program}", *(f"{each.name}={'x'.join(map(str, each.shape))}" for each in test.inputs)])
