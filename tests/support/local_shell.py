"""This machine as one that is reached by a shell."""

from __future__ import annotations

from collections.abc import Sequence


class LocalShell:
    """This machine."""

    def words(self, command: Sequence[str]) -> list[str]:
        return list(command)

    def ended(self, code: int) -> int:
        return code

    def explain(self, code: int, printed: str) -> str:
        lines = [line.strip() for line in printed.splitlines() if line.strip()]
        return f"{self}: {lines[-1] if lines else f'a command ended with code {code}'}"

    def __str__(self) -> str:
        return "this machine"
