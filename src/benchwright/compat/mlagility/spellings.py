"""Options and commands of MLAgility's `benchit`, as they are called here."""

from __future__ import annotations

from collections.abc import Sequence

_COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("cache", "print"): ("cache", "stats"),
    ("cache", "report"): ("report", "--all"),
}


class MlagilitySpellings:
    """Where its models are measured is a matter of the runtime here, as far as it is not another machine."""

    def spelt(self, command: str, flag: str) -> tuple[str, ...] | None:
        return ("--runtime",) if flag == "--backend" else None

    def spelt_command(self, words: Sequence[str]) -> tuple[str, ...] | None:
        return _COMMANDS.get(tuple(words[:2]))
