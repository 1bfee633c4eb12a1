"""Notes of several launches, told once each, with how many launches they concern and the worst figure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.run import Launch


class Noted(msgspec.Struct, frozen=True):
    """`share`: in how many of the launches, unless there is only one. `figure`: the worst one, which is the smallest."""

    text: str
    share: str = ""
    figure: str = ""

    def __str__(self) -> str:
        more = ", ".join(filter(None, (self.share, self.figure)))
        return f"{self.text} ({more})" if more else self.text


def noted_of(launches: Sequence[Launch]) -> list[Noted]:
    """Warm-up launches are left out; their numbers do not count."""
    measured = [x for x in launches if not x.warmup]
    figures: dict[str, list[str]] = {}
    for launch in measured:
        for note in launch.notes:
            figures.setdefault(note.text, []).append(note.figure or "")
    return [
        Noted(
            text,
            "" if len(measured) == 1 else f"{len(seen)} of {len(measured)} launches",
            min(filter(None, seen), default=""),
        )
        for text, seen in figures.items()
    ]
