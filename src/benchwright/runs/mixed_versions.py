"""A run that went on with something changed says so, and so does every result with launches of both versions."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from benchwright.core.note import Note
from benchwright.core.results.provenance import History
from benchwright.core.run import Result

_MOST_SAID = 5


def mixed_notes(history: History | None) -> tuple[Note, ...]:
    """One for each time it was resumed with something changed."""
    resumed = history.resumed if history is not None else ()
    return tuple(
        Note(
            text=f"resumed with --anyway at {resumption.when} although something had changed: {_told(resumption.differences)}"
        )
        for resumption in resumed
    )


def marked_mixed(results: Sequence[Result], history: History | None) -> tuple[Result, ...]:
    """Results whose launches are of more than one version have a note, and the fact `mixed_versions` with each launch."""
    if history is None or not history.resumed:
        return tuple(results)
    return tuple(_marked(result, history) for result in results)


def _marked(result: Result, history: History) -> Result:
    versions = sorted({history.version_of(x.job) for x in result.launches if not x.warmup})
    if len(versions) < 2:
        return result
    between = history.resumed[versions[0] : versions[-1]]
    found = list(dict.fromkeys(line for resumption in between for line in resumption.differences))
    note = f"its launches mix {len(versions)} versions: {_told(found)}"
    launches = tuple(replace(x, facts=x.facts | {"mixed_versions": found}) for x in result.launches)
    benchmark = replace(result.benchmark, notes=(*result.benchmark.notes, note))
    return replace(result, benchmark=benchmark, launches=launches)


def _told(differences: Sequence[str]) -> str:
    more = f"; and {len(differences) - _MOST_SAID} more" if len(differences) > _MOST_SAID else ""
    return "; ".join(differences[:_MOST_SAID]) + more
