"""The newest bisection that was begun in a folder, to go on with it without repeating its command line."""

from __future__ import annotations

from collections.abc import Sequence

from benchwright.app.regressions.bisect import FOLDER, STATE, BisectState
from benchwright.core.errors import InvalidInput
from benchwright.core.files.stored_file import Unreadable, read_stored_json
from benchwright.core.secrets.redact import redact_words
from benchwright.runs.base_folder import BaseFolder

_WHERE = "--resume"


def words_to_resume(base: BaseFolder, folder: str, more: Sequence[str]) -> list[str]:
    """The command line of the newest bisection that was begun in `folder`, with `more` options; InvalidInput if there is none."""
    files = sorted((base.path / FOLDER).glob(f"*/{STATE}"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    states = []
    for file in files:
        try:
            states.append(read_stored_json(file, BisectState))
        except (OSError, Unreadable):
            continue  # resuming that one by its command line says what is wrong with it
    state = next((state for state in states if state.folder == folder), None)
    if state is None:
        other = next((state.folder for state in states if state.folder), None)
        remedy = f"the newest was begun in {other}" if other else "begin one: benchwright bisect GOOD BAD TARGET"
        raise InvalidInput("no bisection was begun in this folder", where=_WHERE, remedy=remedy)
    if redact_words(state.words) != state.words or not state.words:
        remedy = "repeat its whole command line, and add --resume"
        raise InvalidInput(
            "the newest bisection was begun with a secret, which is not kept", where=_WHERE, remedy=remedy
        )
    at = state.words.index("--") if "--" in state.words else len(state.words)
    return [*(word for word in state.words[:at] if word != _WHERE), *more, *state.words[at:]]
