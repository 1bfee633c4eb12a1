"""Puts code around the body of a function without adding a frame to the stack.

The function stays the same object; its code is replaced by one compiled from its own source, with the same names, lines and
columns, so tracebacks, warnings with a `stacklevel` and code that inspects the stack see no difference.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, List, Mapping, Optional

from benchmodels.types import Value

_ABSENT: Any = object()


class Patches:
    """Changes to a program, undone in reverse order."""

    def __init__(self) -> None:
        self._undo: List[Callable[[], None]] = []

    def set_attribute(self, owner: Any, name: str, value: Value) -> None:
        """Undoing leaves the attribute alone if the program has replaced it since."""
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
        """The function stays the same object, so code that compares, holds or wraps it notices nothing."""
        before = function.__code__
        function.__code__ = code

        def undo() -> None:
            if function.__code__ is code:
                function.__code__ = before

        self._undo.append(undo)

    def when_undone(self, undo: Callable[[], None]) -> None:
        self._undo.append(undo)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


_MARK = "benchprobe:"
_NO_PLAIN_BODY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def woven(function: FunctionType, around: str, given: Mapping[str, Any]) -> Optional[CodeType]:
    """The code of `function` with `around` around its body; None if its source is missing or does not match.

    `around` is source in which the statement `BODY` stands for the body, and `GIVEN.name` for `given[name]`, which becomes a
    constant, so nothing is added to the function's module. Its names must not clash with the function's.
    """
    old = function.__code__
    if old.co_flags & _NO_PLAIN_BODY:
        return None
    try:
        definition = _definition(function)
        definition.body = _around(around, definition)
        code = _compiled(definition, function)
    except (OSError, TypeError, SyntaxError, ValueError, IndexError, StopIteration, RecursionError):
        return None
    same = (code.co_freevars, code.co_varnames[: code.co_argcount], code.co_flags & ~inspect.CO_NESTED)
    if same != (old.co_freevars, old.co_varnames[: old.co_argcount], old.co_flags & ~inspect.CO_NESTED):
        return None
    return _with_constants(code, given)


def arguments_text(function: FunctionType) -> Optional[str]:
    """Its arguments as source: `self`, a tuple of the other positional ones, and a dictionary of those by keyword.

    None if `self` is not a named parameter.
    """
    count = function.__code__.co_argcount
    names, rest, more = inspect.getargs(function.__code__)
    if not count:
        return None
    args = [f"{name}, " for name in (*names[1:count], *([f"*{rest}"] if rest else ()))]
    kwargs = [*(f"{name!r}: {name}, " for name in names[count:]), *([f"**{more}"] if more else ())]
    return f"{names[0]}, ({''.join(args)}), {{{''.join(kwargs)}}}"


def _definition(function: FunctionType) -> ast.FunctionDef:
    """The function's syntax tree, with its positions in the file."""
    old = function.__code__
    source = inspect.getsource(old)
    (found,) = ast.parse(textwrap.dedent(source)).body
    if not isinstance(found, ast.FunctionDef) or found.name != old.co_name or found.decorator_list:
        raise ValueError("the source is not that of the function alone")
    first = source.splitlines()[0]
    indent = len(first) - len(first.lstrip())
    for node in ast.walk(found):
        for name in ("col_offset", "end_col_offset"):
            if getattr(node, name, None) is not None:
                setattr(node, name, getattr(node, name) + indent)
    ast.increment_lineno(found, old.co_firstlineno - 1)
    found.returns = None
    for argument in ast.walk(found.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    # The function has its defaults already: anything will do here.
    found.args.defaults = [ast.copy_location(ast.Constant(None), each) for each in found.args.defaults]
    found.args.kw_defaults = [each and ast.copy_location(ast.Constant(None), each) for each in found.args.kw_defaults]
    return found


def _around(around: str, definition: ast.FunctionDef) -> List[ast.stmt]:
    tree = ast.parse(textwrap.dedent(around))
    for node in ast.walk(tree):
        if "lineno" in node._attributes:  # on the line of `def`
            placed: Any = node
            placed.lineno = placed.end_lineno = definition.lineno
            placed.col_offset, placed.end_col_offset = definition.col_offset, definition.col_offset + 3
    documented = definition.body[:1] if ast.get_docstring(definition) is not None else []
    made = _Put(definition.body[len(documented) :]).visit(tree)
    return [*documented, *made.body]


class _Put(ast.NodeTransformer):
    """Replaces `BODY` by the body and `GIVEN.name` by a marked constant."""

    def __init__(self, body: List[ast.stmt]) -> None:
        self._body = body

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "BODY":
            return self._body
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == "GIVEN":
            return ast.copy_location(ast.Constant(value=_MARK + node.attr), node)
        return self.generic_visit(node)


def _compiled(definition: ast.FunctionDef, function: FunctionType) -> CodeType:
    """Compiled inside a class of the right name, which mangles `__names`, inside a function that has its free variables."""
    old = function.__code__
    owner = getattr(function, "__qualname__", "").split(".")[-2:-1]
    inner: List[ast.stmt] = [definition]
    if owner and owner[0].isidentifier():
        held = ast.parse(f"class {owner[0]}: pass").body[0]
        assert isinstance(held, ast.ClassDef)
        held.body, inner = inner, [held]
    free = [name for name in old.co_freevars if name != "__class__"]
    outer = ast.parse("def outer():\n    " + "".join(f"{name} = " for name in free) + "None").body[0]
    assert isinstance(outer, ast.FunctionDef)
    outer.body += inner
    tree = ast.fix_missing_locations(ast.Module(body=[outer], type_ignores=[]))
    code = _find(compile(tree, old.co_filename, "exec", dont_inherit=True, flags=_future(old)), definition)
    named = {name: getattr(old, name) for name in ("co_name", "co_qualname") if hasattr(old, name)}
    flags = (code.co_flags & ~inspect.CO_NESTED) | (old.co_flags & inspect.CO_NESTED)
    return code.replace(**named, co_flags=flags)


def _future(old: CodeType) -> int:
    import __future__

    known = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
    return sum(flag for flag in set(known) if old.co_flags & flag and flag > inspect.CO_COROUTINE)


def _find(code: CodeType, definition: ast.FunctionDef) -> CodeType:
    """The code that the definition was compiled to: the outermost of that name and line."""
    waiting = [code]
    while waiting:
        one = waiting.pop(0)
        if one.co_name == definition.name and one.co_firstlineno == definition.lineno:
            return one
        waiting += [constant for constant in one.co_consts if isinstance(constant, CodeType)]
    raise ValueError("the definition was not compiled")


def _with_constants(code: CodeType, given: Mapping[str, Any]) -> CodeType:
    marked: Dict[str, Any] = {_MARK + name: value for name, value in given.items()}
    constants = [marked.get(one, one) if type(one) is str else one for one in code.co_consts]
    return code.replace(co_consts=tuple(constants))
