"""Options of Python's `timeit`, as they are called here."""

from __future__ import annotations

NAMES = {"-r": "--repeat", "--setup_line": "--setup", "-v": "--verbose"}


class TimeitSpellings:
    """For `bw run` only: it measures, as timeit does."""

    def spelt(self, command: str, flag: str) -> tuple[str, ...] | None:
        if flag == "--wall":  # that is what is measured anyway
            return ()
        return (NAMES[flag],) if command == "run" and flag in NAMES else None
