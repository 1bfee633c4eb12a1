"""Folders with a `bench.toml`: `script = "train.py"`; an entry with `profile: true` lets cProfile run it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from benchwright.core.benchmark import Runner
from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.dialect import DialectProcess, SuiteDialect
from benchwright.kinds.suite.folder_facts import FolderFacts
from benchwright.kinds.yaml.value_types import FLAG, Key

FILE = "bench.toml"


class BenchTomlFacts(FolderFacts, frozen=True, kw_only=True):
    wrong: str | None = None

    def refusal(self, entry: Mapping[str, object] = {}) -> InvalidInput | None:
        if self.wrong is None:
            return None
        return InvalidInput(self.wrong, where=os.path.join(self.folder, FILE), remedy='write script = "train.py"')

    def runner(self, entry: Mapping[str, Any]) -> Runner | None:
        return Runner(name="cProfile", dialect="bench-toml") if entry.get("profile") else None


class BenchTomlDialect(SuiteDialect):
    def entry_keys(self) -> Mapping[str, Key]:
        return {"profile": Key(FLAG, "true: cProfile runs the script")}

    def facts(self, folder: str) -> BenchTomlFacts | None:
        place = os.path.abspath(folder)
        try:
            with open(os.path.join(place, FILE), "rb") as file:
                said = tomllib.load(file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            return BenchTomlFacts(folder=place, wrong=f"cannot be read: {error}")
        return BenchTomlFacts(
            folder=place,
            prepare_script=None,
            main_script=str(said.get("script", "main.py")),
        )

    def run(
        self, runner: Runner, program: Sequence[str], stem: str, *, contained: bool, together: bool
    ) -> DialectProcess:
        return DialectProcess(argv=("-m", "cProfile", "-o", f"{stem}.prof", *program))
