"""For whoever used `python -m timeit` until now."""

from __future__ import annotations

from collections.abc import Sequence


class TimeitHints:
    """What `timeit` has and benchwright has not, and what to use."""

    def instead_of_command(self, words: Sequence[str]) -> str | None:
        return "use 'bw run -- python -c STATEMENT'" if words[0] == "timeit" else None

    def instead_of_option(self, name: str) -> str | None:
        return {"--number": "use --repeat N", "--setup": "put it into the command"}.get(name)
