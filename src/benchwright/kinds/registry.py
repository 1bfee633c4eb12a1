"""Which sources there are: our own, loaded only when used, and those that other packages add."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from importlib import metadata

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.base import ENTRY_POINT_GROUP, Source

# The same as the entry points of this package: looking those up costs more than loading these.
BUILT_IN = {
    "suite": "benchwright.kinds.suite.read.suite:SuiteSource",
    "tasks": "benchwright.kinds.tasks.read:TaskConfigSource",
    "script": "benchwright.kinds.models.script:ScriptSource",
    "model": "benchwright.kinds.models.model_file:ModelFileSource",
}


def source_named(name: str) -> Source:
    """The source that `--format` calls so."""
    if name in BUILT_IN:
        return _load(BUILT_IN[name])
    added = {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}
    if name in added:
        source: Source = added[name].load()()
        return source
    known = [*BUILT_IN, *added]
    remedy = did_you_mean(name, known) or f"use one of {', '.join(dict.fromkeys(known))}"
    raise InvalidInput(f"'{name}' is not a format", where="--format", remedy=remedy)


def source_for(target: str) -> Source | None:
    """The first source that recognises `target`; ours first."""
    return next((source for source in _all() if source.recognises(target)), None)


def _all() -> Iterator[Source]:
    for place in BUILT_IN.values():
        yield _load(place)
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        if entry.name not in BUILT_IN:
            yield entry.load()()


def _load(place: str) -> Source:
    module, _, name = place.partition(":")
    source: Source = getattr(importlib.import_module(module), name)()
    return source
