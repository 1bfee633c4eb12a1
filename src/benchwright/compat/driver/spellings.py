"""Options of the deep-learning benchmark driver, as they are called here."""

from __future__ import annotations


class DriverSpellings:
    """Most of its options have kept their names."""

    def spelt(self, command: str, flag: str) -> tuple[str, ...] | None:
        return ("--task",) if flag == "--task-name" else None
