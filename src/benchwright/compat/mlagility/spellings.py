"""Options of MLAgility's `benchit`, as they are called here."""

from __future__ import annotations


class MlagilitySpellings:
    """Where its models are measured is a matter of the runtime here, as far as it is not another machine."""

    def spelt(self, command: str, flag: str) -> tuple[str, ...] | None:
        return ("--runtime",) if flag == "--backend" else None
