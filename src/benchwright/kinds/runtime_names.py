"""The names of runtimes, as users write them: known here, or to the interpreter that models are measured with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.metadata import requires
from subprocess import TimeoutExpired

from benchmodels.runtimes.base import Runtime, RuntimeBase
from benchmodels.runtimes.registry import (
    UnknownRuntime,
    did_you_mean,
    known_runtimes,
    names_known_here,
    runtime_named,
)
from benchwright.core.errors import InvalidInput
from benchwright.kinds.interpreter import ask, default_python

_PATIENCE_S = 30.0
_MORE_RUNTIMES = "benchwright-runtimes"
# Places, which users of other tools name where a runtime stands here.
_PLACES = {"local": "leave it out to measure here", "remote": "name the other machine with --on ssh:HOST"}


def runtimes_named(words: Sequence[str], python: str | None) -> tuple[str, ...]:
    """Proper names, including runtimes that only plug-ins of `python`, the measured interpreter, add; InvalidInput for others."""
    if not words:
        return ()

    names = names_known_here(words)
    unknown = [word for word, name in names.items() if name is None]
    if unknown:
        names |= _known_to(python or default_python(), unknown)
    for word in unknown:
        if names[word] is None:
            remedy = _PLACES.get(word) or _how_to_install(word, python or default_python()) or did_you_mean(word)
            remedy = remedy or f"use one of {', '.join(known_runtimes())}, or install its plug-in"
            raise InvalidInput(f"unknown runtime '{word}'", where="--runtime", remedy=remedy)
    return tuple(dict.fromkeys(name for name in names.values() if name is not None))


@cache
def known_runtime(name: str) -> Runtime | RuntimeBase:
    """The runtime; without a name and with the defaults of all runtimes if only the measured interpreter has it."""
    try:
        return runtime_named(name)
    except UnknownRuntime:
        return RuntimeBase()


def _how_to_install(word: str, python: str) -> str | None:
    """For a runtime of the package that comes beside benchwright, whose extras have the names of its runtimes."""
    needs = f"{_MORE_RUNTIMES}[{word}]"
    offered = any(requirement.startswith(needs) for requirement in requires("benchwright") or ())
    return f"install it where models are measured: {python} -m pip install '{needs}'" if offered else None


def _known_to(python: str, words: Sequence[str]) -> dict[str, str | None]:
    """The proper names that another interpreter has for `words`."""
    try:
        done = ask(python, "benchmodels.runtimes.registry", words, patience_s=_PATIENCE_S)
        names: dict[str, str | None] = json.loads(done.stdout)["names"]
    except (OSError, ValueError, TimeoutExpired):
        return dict.fromkeys(words)  # an interpreter that does not start is reported elsewhere
    return names
