"""Assumptions of FAI-PEP's specifications: its scripts, one thread for programs on a host, and the flags of its programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchwright.compat.faipep.command_lines import command_of
from benchwright.kinds.spec.read.keys import THREADS
from benchwright.kinds.spec.spec_test import SpecTest


class FaiPepDialect:
    """`{FAIPEPROOT}/libraries/python` has scripts of ours with the arguments of FAI-PEP's."""

    def folders(self) -> Mapping[str, str]:
        return {"FAIPEPROOT": str(Path(__file__).parent)}

    def variables(self, test: SpecTest) -> Mapping[str, str]:
        return dict.fromkeys(THREADS, "1")

    def command(self, test: SpecTest) -> str | None:
        return command_of(test)
