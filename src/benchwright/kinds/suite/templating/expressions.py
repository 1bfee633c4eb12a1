"""Conditions and numbers in suite files: Python's expressions without anything that can do harm.

Numbers, texts, booleans, None, lists, names, `a['b']`, `a.b` on maps, arithmetic, comparisons, `in`, and/or/not,
`x if c else y`, and FUNCTIONS. Everything is bounded: the text, its depth, the size of numbers and texts.
Why this is no library: docs/decisions/0019.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from benchwright.core.errors import InvalidInput, did_you_mean

LONGEST_EXPRESSION = 1000  # characters
DEEPEST = 40
LONGEST_TEXT = 10_000
MOST_BITS = 256  # of a whole number
MOST_DIGITS = 20  # that `round` may be asked for

Function = Callable[..., Any]


class ExpressionError(InvalidInput):
    """A fault in an expression: `text` is the expression, `column` the place in it."""


def evaluate(text: str, names: Mapping[str, object], functions: Mapping[str, Function] | None = None) -> object:
    """The value of `text`; raises ExpressionError and nothing else. `functions` are callable besides FUNCTIONS."""
    text = text.strip()
    return _Evaluation(text, names, functions or {}).value(_parsed(text), 0)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST_EXPRESSION:
        raise ExpressionError(f"the expression is longer than {LONGEST_EXPRESSION} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        column = error.offset if error.offset and error.lineno == 1 else None
        raise ExpressionError(f"not an expression: {error.msg}", column=column, text=_shown(text)) from None
    except (ValueError, MemoryError, RecursionError):
        raise ExpressionError("not an expression", text=_shown(text)) from None


def _shown(text: str) -> str:
    """As one line that can be printed."""
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


class _Evaluation:
    def __init__(self, text: str, names: Mapping[str, object], functions: Mapping[str, Function]) -> None:
        self._text = text
        self._names = names
        self._functions = functions

    def value(self, node: ast.expr, depth: int) -> object:
        visit = _VISITORS.get(type(node))
        if visit is None:
            raise self.error(f"{_said(node)} is not allowed in expressions", node)
        if depth > DEEPEST:
            raise self.error(f"the expression is nested deeper than {DEEPEST}", node)
        try:
            return self._bounded(visit(self, node, depth + 1), node)
        except (ArithmeticError, ValueError, TypeError, LookupError, RecursionError) as error:
            what = str(error) or type(error).__name__
            raise self.error(f"cannot be computed: {what}", node) from None

    def error(self, what: str, node: ast.AST, remedy: str | None = None) -> ExpressionError:
        column = None
        if self._text.isprintable() and getattr(node, "lineno", 0) == 1:
            before = self._text.encode("utf-8", "surrogatepass")[: getattr(node, "col_offset", 0)]
            column = len(before.decode("utf-8", "replace")) + 1
        return ExpressionError(what, column=column, text=_shown(self._text), remedy=remedy)

    def _bounded(self, value: object, node: ast.expr) -> object:
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise self.error("the number becomes too large", node)
        if isinstance(value, (str, list)) and len(value) > LONGEST_TEXT:
            raise self.error("the text becomes too long", node)
        if isinstance(value, (complex, bytes)) or value is Ellipsis:
            raise self.error(f"{_said(node)} is not allowed in expressions", node)
        return value

    def constant(self, node: ast.Constant, depth: int) -> object:
        return node.value

    def name(self, node: ast.Name, depth: int) -> object:
        if node.id in self._names:
            return self._names[node.id]
        raise self.error(f"unknown name '{node.id}'", node, self._instead(node.id, self._names))

    def items(self, node: ast.List | ast.Tuple, depth: int) -> list[object]:
        return [self.value(item, depth) for item in node.elts]

    def index(self, node: ast.Subscript, depth: int) -> object:
        if isinstance(node.slice, ast.Slice):
            raise self.error("slices are not part of expressions", node)
        return self._part(self.value(node.value, depth), self.value(node.slice, depth), node)

    def attribute(self, node: ast.Attribute, depth: int) -> object:
        whole = self.value(node.value, depth)
        if not isinstance(whole, Mapping):
            raise self.error(f"only a map has keys such as '{node.attr}'", node)
        return self._part(whole, node.attr, node)

    def _part(self, whole: object, key: object, node: ast.expr) -> object:
        if isinstance(whole, Mapping):
            if isinstance(key, (str, int, float)) and key in whole:
                return whole[key]
            raise self.error(f"no such key: '{key}'", node, self._instead(str(key), map(str, whole)))
        if isinstance(whole, (list, tuple, str)) and isinstance(key, int):
            return whole[key]
        raise self.error(f"{kind(whole)} cannot be indexed by {kind(key)}", node)

    def binary(self, node: ast.BinOp, depth: int) -> object:
        left, right = self.value(node.left, depth), self.value(node.right, depth)
        if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
            return left + right
        compute = _ARITHMETIC.get(type(node.op))
        if compute is None or not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            sign = _SIGNS.get(type(node.op), "this operator")
            raise self.error(f"{sign} does not work on {kind(left)} and {kind(right)}", node)
        return compute(left, right)

    def unary(self, node: ast.UnaryOp, depth: int) -> object:
        value = self.value(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return not value
        if not isinstance(value, (int, float)) or not isinstance(node.op, (ast.USub, ast.UAdd)):
            raise self.error(f"a sign needs a number, not {kind(value)}", node)
        return -value if isinstance(node.op, ast.USub) else +value

    def boolean(self, node: ast.BoolOp, depth: int) -> object:
        stops_at = isinstance(node.op, ast.Or)
        value: object = None
        for part in node.values:
            value = self.value(part, depth)
            if bool(value) is stops_at:
                return value
        return value

    def condition(self, node: ast.IfExp, depth: int) -> object:
        return self.value(node.body if self.value(node.test, depth) else node.orelse, depth)

    def comparison(self, node: ast.Compare, depth: int) -> bool:
        left = self.value(node.left, depth)
        for sign, operand in zip(node.ops, node.comparators, strict=True):
            right = self.value(operand, depth)
            if not self._compared(sign, left, right, node):
                return False
            left = right
        return True

    def _compared(self, sign: ast.cmpop, left: object, right: object, node: ast.expr) -> bool:
        if isinstance(sign, (ast.In, ast.NotIn)):
            if not isinstance(right, (list, tuple, Mapping)) and not (isinstance(right, str) and isinstance(left, str)):
                raise self.error(f"'in' does not work on {kind(right)}", node)
            return (left in right) is isinstance(sign, ast.In)
        if isinstance(sign, (ast.Is, ast.IsNot)):
            if left is not None and right is not None:
                raise self.error("'is' compares with None only", node, "write ==")
            return (left is right) is isinstance(sign, ast.Is)
        return bool(_COMPARISONS[type(sign)](left, right))

    def call(self, node: ast.Call, depth: int) -> object:
        if not isinstance(node.func, ast.Name):
            raise self.error("only the functions of expressions can be called", node)
        function = self._functions.get(node.func.id) or FUNCTIONS.get(node.func.id)
        if function is None:
            known = [*FUNCTIONS, *self._functions]
            raise self.error(f"'{node.func.id}' is not a function", node, self._instead(node.func.id, known))
        if node.keywords or any(isinstance(argument, ast.Starred) for argument in node.args):
            raise self.error(f"{node.func.id} takes positional values only", node)
        arguments = [self.value(argument, depth) for argument in node.args]
        return function(*arguments)

    @staticmethod
    def _instead(word: str, known: Any) -> str | None:
        known = list(known)
        return did_you_mean(word, known) or (f"known: {', '.join(sorted(known)[:12])}" if known else None)


def _said(node: ast.AST) -> str:
    return {
        ast.Lambda: "a function",
        ast.Dict: "a map",
        ast.Set: "a set",
        ast.JoinedStr: "an f-string",
        ast.NamedExpr: "':='",
    }.get(type(node), f"'{type(node).__name__}'")


def kind(value: object) -> str:
    """The type of a value, for a message."""
    if value is None:
        return "None"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", tuple: "a list"}
    return kinds.get(type(value), "a map" if isinstance(value, Mapping) else "this")


def _power(base: float, exponent: float) -> float:
    whole = isinstance(base, int) and isinstance(exponent, int) and abs(base) > 1
    if whole and abs(exponent) * int(base).bit_length() > 2 * MOST_BITS:
        raise OverflowError("the number becomes too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ValueError("the root of a negative number")
    return float(result) if isinstance(result, float) else result


def _rounded(value: float, digits: int = 0) -> float:
    if abs(digits) > MOST_DIGITS:
        raise ValueError(f"round takes up to {MOST_DIGITS} digits")
    return round(value, digits) if digits else round(value)


# Python's own where those are bounded: what they cannot take, they say themselves.
FUNCTIONS: dict[str, Function] = {
    "min": min,
    "max": max,
    "len": len,
    "int": int,
    "float": float,
    "round": _rounded,
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
}
_ARITHMETIC: dict[type[ast.operator], Function] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_SIGNS = dict(zip(_ARITHMETIC, "+ - * / // % **".split(), strict=True))
_COMPARISONS: dict[type[ast.cmpop], Function] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_VISITORS: dict[type[ast.expr], Function] = {
    ast.Constant: _Evaluation.constant,
    ast.Name: _Evaluation.name,
    ast.List: _Evaluation.items,
    ast.Tuple: _Evaluation.items,
    ast.Subscript: _Evaluation.index,
    ast.Attribute: _Evaluation.attribute,
    ast.BinOp: _Evaluation.binary,
    ast.UnaryOp: _Evaluation.unary,
    ast.BoolOp: _Evaluation.boolean,
    ast.IfExp: _Evaluation.condition,
    ast.Compare: _Evaluation.comparison,
    ast.Call: _Evaluation.call,
}
