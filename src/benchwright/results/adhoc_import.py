"""A path given where a run is expected: results of other tools are read on the fly, anything else is named as what it is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from benchwright.core.errors import InvalidInput
from benchwright.core.redacted import run_without_secrets
from benchwright.core.run import Run
from benchwright.kinds.registry import kind_for
from benchwright.options.table import SORTS
from benchwright.runs.foreign_json import MOST_JSON_BYTES
from benchwright.runs.importers import IMPORTERS, import_results
from benchwright.runs.known_runs import all_runs

_MOST_NAMED = 4


def foreign_runs(word: str) -> list[Run]:
    """The runs of another tool in the file or folder at that path, which are not kept; none if there is no such path."""
    path = Path(word).expanduser()
    if not word or not os.path.exists(path):
        return []

    try:
        found = import_results(path)
    except InvalidInput as error:
        raise _what_it_is(path, word, error) from None
    if not found.runs:
        problem = found.problems[0] if found.problems else "it holds no results; was the tool interrupted?"
        raise InvalidInput(problem, where=word)
    return [run_without_secrets(run) for run in found.runs]


def refuse_several(word: str, found: Sequence[Run]) -> Run:
    """The one run that is meant."""
    if len(found) == 1:
        return found[0]
    names = ", ".join(run.id for run in found[:_MOST_NAMED]) + (", …" if len(found) > _MOST_NAMED else "")
    raise InvalidInput(
        f"holds {len(found)} runs ({names})",
        where=word,
        remedy=f"import them with 'benchwright import {word}', then name one",
    )


def _what_it_is(path: Path, word: str, error: InvalidInput) -> InvalidInput:
    for runs in (path, path / "runs"):
        if path.is_dir() and (known := all_runs(runs)):
            base = runs.parent if (runs.parent / "runs").is_dir() else path
            return InvalidInput(
                f"holds {len(known)} run{'' if len(known) == 1 else 's'} of benchwright",
                where=word,
                remedy=f"list them with 'benchwright runs --base {base}', and name one",
            )
    kind = kind_for(str(path)) if path.is_file() else None
    is_cut_off = error.line is not None and path.suffix == ".json"
    if not path.is_dir() and (
        not path.is_file() or path.stat().st_size > MOST_JSON_BYTES or (is_cut_off and kind is None)
    ):
        return error  # it says why the file was not read, or not to its end
    if kind is None:
        return InvalidInput(
            f"is neither a run nor results of {', '.join(IMPORTERS.names()) or 'a known tool'}",
            where=word,
            remedy=f"list runs with 'benchwright runs'; 'benchwright import --from TOOL {word}' says what is wrong with it",
        )
    sort = SORTS.get(kind.name, kind.name).removesuffix("s")
    return InvalidInput(f"is a {sort}, not a run", where=word, remedy=f"measure it with 'benchwright run {word}'")
