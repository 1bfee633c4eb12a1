"""The names of runtimes, as users write them: known here, or to the interpreter that models are measured with."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.core.errors import InvalidInput
from benchwright.kinds.interpreter import ask, default_python

_PATIENCE_S = 30.0
_MORE_RUNTIMES = "benchwright-runtimes"
# Where users of MLAgility have models measured, with --backend.
_PLACES = {"local": "leave it out to measure here", "remote": "name the other machine with --on ssh:HOST"}


def runtimes_named(words: Sequence[str], python: str | None) -> tuple[str, ...]:
    """Proper names, including runtimes that only plug-ins of `python`, the measured interpreter, add; InvalidInput for others."""
    if not words:
        return ()
    from benchmodels.runtimes.registry import did_you_mean, known_runtimes, names_known_here

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


def _how_to_install(word: str, python: str) -> str | None:
    """For a runtime of the package that comes beside benchwright, whose extras have the names of its runtimes."""
    from importlib.metadata import requires

    needs = f"{_MORE_RUNTIMES}[{word}]"
    offered = any(requirement.startswith(needs) for requirement in requires("benchwright") or ())
    return f"install it where models are measured: {python} -m pip install '{needs}'" if offered else None


def _known_to(python: str, words: Sequence[str]) -> dict[str, str | None]:
    """The proper names that another interpreter has for `words`."""
    import json
    from subprocess import TimeoutExpired

    try:
        done = ask(python, "benchmodels.runtimes.registry", words, patience_s=_PATIENCE_S)
        names: dict[str, str | None] = json.loads(done.stdout)["names"]
    except (OSError, ValueError, TimeoutExpired):
        return dict.fromkeys(words)  # an interpreter that does not start is reported elsewhere
    return names
