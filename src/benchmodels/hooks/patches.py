"""Changes to a program's functions and classes that can be taken back, each only if it is still ours to take back."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any, Callable, List

_ABSENT: Any = object()


class Patches:
    """Taken back in the reverse order."""

    def __init__(self) -> None:
        self._undo: List[Callable[[], None]] = []

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        """Where something else has been put over ours by then, that stays."""
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        ours = vars(owner).get(name)

        def undo() -> None:
            if vars(owner).get(name) is not ours:
                return
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.append(undo)

    def swap_code(self, function: FunctionType, code: CodeType) -> None:
        """The function stays the same object, so whoever compares it, holds it or wraps it notices nothing."""
        before = function.__code__
        function.__code__ = code

        def undo() -> None:
            if function.__code__ is code:
                function.__code__ = before

        self._undo.append(undo)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()
