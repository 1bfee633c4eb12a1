"""The zoos of an interpreter and their models, without building any."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.kinds.interpreter import ask

_PATIENCE_S = 60.0


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a zoo, as the zoo lists it."""

    zoo: str
    name: str
    task: str
    labels: dict[str, str] = {}
    same_as: str = ""
    sizes_from: str = ""  # part of its identity, if its sizes may differ between machines

    @property
    def target(self) -> str:
        return f"{self.zoo}:{self.name}"

    @property
    def canonical(self) -> str:
        """The same for the same model in several zoos."""
        return self.same_as or self.target

    @property
    def all_labels(self) -> dict[str, str]:
        return {"zoo": self.zoo, "task": self.task, **self.labels}


class ListedZoo(msgspec.Struct, frozen=True, kw_only=True):
    """One zoo of an interpreter. Empty `version`: its library is not installed. `problem`: why it cannot be listed."""

    zoo: str
    version: str = ""
    torch: str = ""
    packages: tuple[str, ...] = ()
    problem: str | None = None
    models: tuple[ListedModel, ...] = ()


def listed_zoos(python: str, names: Iterable[str] = ()) -> dict[str, ListedZoo]:
    """These zoos of `python`, or all, by name. A name that it does not know is missing."""
    return dict(_listed(python, tuple(dict.fromkeys(names))))


def forget_listings() -> None:
    """After an install: the next question is asked again."""
    importlib.invalidate_caches()
    _listed.cache_clear()


@lru_cache(maxsize=32)
def _listed(python: str, names: tuple[str, ...]) -> dict[str, ListedZoo]:
    lines = _own_lines(names) if os.path.abspath(python) == os.path.abspath(sys.executable) else _lines(python, names)
    zoos: dict[str, ListedZoo] = {}
    models: dict[str, list[ListedModel]] = {}
    for line in lines:
        if "version" in line:
            zoos[line["zoo"]] = msgspec.convert(line, ListedZoo)
        else:
            models.setdefault(line["zoo"], []).append(msgspec.convert(line, ListedModel))
    return {name: msgspec.structs.replace(zoo, models=tuple(models.get(name, ()))) for name, zoo in zoos.items()}


def _own_lines(names: tuple[str, ...]) -> list[dict[str, Any]]:
    from benchmodels.zoo.__main__ import listed

    return list(listed(names))


def _lines(python: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Asks another interpreter."""
    from subprocess import TimeoutExpired

    try:
        done = ask(python, "benchmodels.zoo", ("list", *names), patience_s=_PATIENCE_S)
    except (OSError, TimeoutExpired) as error:
        raise CannotMeasure(f"{python} could not list its zoos: {error}; choose another with --python") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise CannotMeasure(f"{python} could not list its zoos: {last}; choose another with --python")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
