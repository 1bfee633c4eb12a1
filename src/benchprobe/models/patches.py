"""Changes to a program's functions and classes that can be taken back, each only if it is still ours to take back."""

from __future__ import annotations

import ast
import dis
from types import CodeType, FunctionType
from typing import Any, Callable, List, NamedTuple

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

    def set_global(self, names: Any, name: str, value: Any) -> None:
        names[name] = value
        self._undo.append(lambda: names.pop(name, None))

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


def with_code(function: FunctionType, code: CodeType) -> FunctionType:
    """Another function, with that code and everything else alike."""
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


class Spot(NamedTuple):
    """A piece of a line of source."""

    line: int
    begin: int
    end: int


def code_in_place_of(function: FunctionType, source: str) -> CodeType:
    """The function in `source`, compiled as if all of it were the last call that `function` makes, so tracebacks look alike."""
    old = function.__code__
    spot = _last_call(old)
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if "lineno" in node._attributes:
            first = old.co_firstlineno if isinstance(node, ast.FunctionDef) else spot.line
            places = {"lineno": first, "end_lineno": spot.line, "col_offset": spot.begin, "end_col_offset": spot.end}
            for name, value in places.items():
                setattr(node, name, value)
    outer = compile(tree, old.co_filename, "exec", dont_inherit=True)
    code = next(constant for constant in outer.co_consts if isinstance(constant, CodeType))
    named = {name: getattr(old, name) for name in ("co_name", "co_qualname") if hasattr(old, name)}
    return code.replace(**named)


def _last_call(code: CodeType) -> Spot:
    """Where the value comes from that the function returns at its end."""
    instructions = list(dis.get_instructions(code))
    last = next((i for i in reversed(range(len(instructions))) if instructions[i].opname == "RETURN_VALUE"), 0)
    lines = [line for _, line in dis.findlinestarts(code) if line]
    positions = getattr(instructions[max(last - 1, 0)], "positions", None)  # not before Python 3.11
    if positions is None or None in positions:
        return Spot(max(lines, default=code.co_firstlineno), 0, 1)
    return Spot(positions.lineno, positions.col_offset, positions.end_col_offset)
