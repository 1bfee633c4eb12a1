"""Reading a benchfile.py without running it: what the class behind `__pack__` sets, and which methods it overrides."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

PACKAGES = ("Package", "BasePackage")  # of milabench.pack
Method = ast.FunctionDef | ast.AsyncFunctionDef


class Unclear(Exception):
    """Only running the file would show it."""


class Overridden(msgspec.Struct, frozen=True, kw_only=True):
    """A method or property that the class overrides."""

    name: str
    line: int
    column: int = 1


class PackClass(msgspec.Struct, frozen=True, kw_only=True):
    """`attributes`: set by the class or one of its bases in the same file; `unclear`: known only by running the file."""

    attributes: dict[str, Any]
    unclear: tuple[str, ...]
    overridden: tuple[Overridden, ...]


def read_pack_class(tree: ast.Module) -> PackClass:
    """Raises Unclear if the class itself is unclear, LookupError if the file sets no `__pack__`."""
    constants = dict(_constants(tree))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    chosen = None
    for node in tree.body:
        for name, value in _assignments(node):
            if name == "__pack__":
                chosen = value
    if chosen is None:
        raise LookupError("it sets no __pack__")
    if not isinstance(chosen, ast.Name) or chosen.id not in classes:
        raise Unclear
    attributes: dict[str, object] = {}
    unclear: set[str] = set()
    methods: dict[str, Method] = {}
    for cls in reversed(_family(classes[chosen.id], classes, _package_names(tree))):
        for node in cls.body:
            if isinstance(node, Method):
                methods[node.name] = node
            for name, value in _assignments(node):
                unclear.discard(name)
                try:
                    attributes[name] = _value(value, constants | attributes)
                except Unclear:
                    unclear.add(name)
    own = [method for method in methods.values() if not _only_calls_super(method)]
    overridden = tuple(Overridden(name=m.name, line=m.lineno, column=m.col_offset + 1) for m in own)
    return PackClass(attributes=attributes, unclear=tuple(sorted(unclear)), overridden=overridden)


def _family(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef], packages: frozenset[str]) -> list[ast.ClassDef]:
    """The class and its bases within the file, the nearest first; Unclear if another base is not milabench's own."""
    found: list[ast.ClassDef] = []
    waiting = [cls]
    while waiting:
        one = waiting.pop(0)
        if one in found:
            raise Unclear
        found.append(one)
        if one.decorator_list or one.keywords:
            raise Unclear
        for base in one.bases:
            name = ast.unparse(base)
            if name in classes:
                waiting.append(classes[name])
            elif name not in packages:
                raise Unclear
    return found


def _package_names(tree: ast.Module) -> frozenset[str]:
    """How the file calls milabench's own classes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                called = alias.asname or alias.name
                if node.module == "milabench.pack" and alias.name in PACKAGES:
                    names.add(called)
                elif node.module == "milabench" and alias.name == "pack":
                    names |= {f"{called}.{package}" for package in PACKAGES}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "milabench.pack":
                    names |= {f"{alias.asname or alias.name}.{package}" for package in PACKAGES}
    return frozenset(names)


def _constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    known: dict[str, object] = {}
    for node in tree.body:
        for name, value in _assignments(node):
            try:
                known[name] = _value(value, known)
                yield name, known[name]
            except Unclear:
                known.pop(name, None)


def _assignments(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
        yield node.target.id, node.value


def _value(node: ast.expr, known: Mapping[str, object]) -> object:
    """Texts, None, lists of them, known names, and texts put together of those; Unclear for anything else."""
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str | int | float)):
        return node.value
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, known) for item in node.elts]
    if isinstance(node, ast.JoinedStr):
        return "".join(str(_value(part, known)) for part in node.values)
    if isinstance(node, ast.FormattedValue) and node.format_spec is None and node.conversion == -1:
        return _value(node.value, known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _value(node.left, known), _value(node.right, known)
        if isinstance(left, str) and isinstance(right, str):
            return left + right
    raise Unclear


def _only_calls_super(method: Method) -> bool:
    """Whether it hands its arguments on as they are, and does nothing else."""
    body = [node for node in method.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    value = body[0].value
    if isinstance(value, ast.Await):
        value = value.value
    arguments: list[ast.expr] = []
    if isinstance(value, ast.Call):
        arguments = [*value.args, *(word.value for word in value.keywords)]
        value = value.func
    if not isinstance(value, ast.Attribute) or value.attr != method.name:
        return False
    plain = all(isinstance(a.value if isinstance(a, ast.Starred) else a, ast.Name) for a in arguments)
    return plain and ast.unparse(value.value).startswith("super(")
