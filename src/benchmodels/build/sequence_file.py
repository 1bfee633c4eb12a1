"""A build sequence from a Python file of the user: what is done to a model before and after its export to ONNX.

    def fuse(model): ...        # gets the module, returns the one to export
    def shrink(path): ...       # gets the path of the ONNX file, returns the one to use

    SEQUENCE = [fuse, "export", shrink]

A function with a second parameter also gets the inputs, by name: tensors before the export, arrays after it.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import runpy
import sys
import traceback
from functools import lru_cache
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from benchmodels.failures import is_out_of_memory
from benchmodels.runtimes.base import RuntimeOptions, StepTimer, Unsupported
from benchmodels.types import Module, Value

NAME = "SEQUENCE"
EXPORT = "export"
_HOW = f'{NAME} is a list of functions and the word "{EXPORT}", such as [fuse, "{EXPORT}", shrink]'
LENGTH = 16


class BadSequenceFile(ValueError):
    """The text names the file, and the line where it is known; `remedy` what to write."""

    def __init__(self, where: str, text: str, remedy: str = _HOW) -> None:
        super().__init__(f"{where}: {text}; {remedy}")
        self.where = where
        self.text = text
        self.remedy = remedy


class BuildSequence(NamedTuple):
    """`of_model`: functions for the module, before the export; `of_onnx`: for the ONNX file, after it."""

    path: str
    of_model: Tuple[Callable[..., Any], ...]
    of_onnx: Tuple[Callable[..., Any], ...]

    def changed_model(self, module: Module, inputs: Mapping[str, Value], steps: StepTimer) -> Module:
        for function in self.of_model:
            module = self._applied(function, module, inputs, EXPORT, steps)
            if not callable(getattr(module, "forward", None)):
                self._refuse(function, EXPORT, f"returned {type(module).__name__}, not a module of torch")
        return module

    def changed_onnx(self, path: str, inputs: Mapping[str, Value], steps: StepTimer) -> str:
        """Files it writes must be in the folder of `path`, which is the build."""
        folder = os.path.realpath(os.path.dirname(path))
        for function in self.of_onnx:
            result = self._applied(function, path, inputs, "convert", steps)
            if not isinstance(result, (str, os.PathLike)) or not os.path.isfile(os.fspath(result)):
                self._refuse(function, "convert", f"returned {result!r}, not the path of an ONNX file")
            path = os.path.realpath(os.fspath(result))
            if os.path.dirname(path) != folder:
                self._refuse(function, "convert", f"wrote {path}; write it beside the file it was given")
        return path

    def _applied(self, function: Any, given: Any, inputs: Mapping[str, Value], stage: str, steps: StepTimer) -> Any:
        more = (dict(inputs),) if _takes_inputs(function) else ()
        with steps.step(f"{stage}.{function.__name__}"):
            try:
                return function(given, *more)
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                where = _place(error.__traceback__, self.path) or _line_of(function)
                text = f"{os.path.basename(self.path)}:{where}: {function.__name__}: {type(error).__name__}: {error}"
                raise Unsupported(stage, text, kind="error") from error

    def _refuse(self, function: Any, stage: str, text: str) -> None:
        where = f"{os.path.basename(self.path)}:{_line_of(function)}"
        raise Unsupported(stage, f"{where}: {function.__name__} {text}", kind="error")


def sequence_of(options: RuntimeOptions, stage: str) -> Optional[BuildSequence]:
    """The one that was asked for, if any; Unsupported if it is none."""
    if not options.sequence_file:
        return None
    try:
        return read_sequence(options.sequence_file)
    except BadSequenceFile as error:
        raise Unsupported(stage, str(error), kind="error") from error


def name_of_sequence(options: RuntimeOptions) -> Dict[str, str]:
    """Its file name, for the `build` event."""
    return {"sequence_file": os.path.basename(options.sequence_file or "")}


def key_of_sequence(options: RuntimeOptions) -> Dict[str, str]:
    """Its part of a build's cache key."""
    return {"sequence": digest_of_sequence(options.sequence_file)} if options.sequence_file else {}


def digest_of_sequence(path: str) -> str:
    """Of the file and the Python files beside it that it imports; BadSequenceFile if it cannot be one. Nothing is run."""
    digest = hashlib.sha256()
    for file in sorted(_files(os.path.abspath(path), {})):
        with open(file, "rb") as source:
            digest.update(hashlib.sha256(source.read()).digest())
    return digest.hexdigest()[:LENGTH]


@lru_cache(maxsize=1)
def read_sequence(path: str) -> BuildSequence:
    """Runs the file, with its folder importable; BadSequenceFile says what is wrong with it, and in which line."""
    _parsed(path)
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    try:
        listed = runpy.run_path(path, run_name="benchwright_sequence").get(NAME)
    except Exception as error:
        where = f"{path}:{_place(error.__traceback__, path) or 1}"
        raise BadSequenceFile(where, f"{type(error).__name__}: {error}", "it is run before a build") from error
    finally:
        sys.path.remove(folder)
    return BuildSequence(path, *_sorted_out(path, listed))


def _sorted_out(path: str, listed: Any) -> Tuple[Tuple[Callable[..., Any], ...], Tuple[Callable[..., Any], ...]]:
    if not isinstance(listed, (list, tuple)) or not listed:
        raise BadSequenceFile(_at_name(path), f"{NAME} is {listed!r}")
    if list(listed).count(EXPORT) > 1:
        raise BadSequenceFile(_at_name(path), f'{NAME} has "{EXPORT}" twice')
    for each in listed:
        if each != EXPORT and not callable(each):
            raise BadSequenceFile(_at_name(path), f"{NAME} has {each!r}")
    place = list(listed).index(EXPORT) if EXPORT in listed else len(listed)
    return tuple(listed[:place]), tuple(listed[place + 1 :])


def _parsed(path: str) -> ast.Module:
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except OSError as error:
        raise BadSequenceFile(path, os.strerror(error.errno or 0), "name a Python file") from error
    except SyntaxError as error:
        raise BadSequenceFile(f"{path}:{error.lineno}", f"{error.msg}", "it must be valid Python") from error
    except ValueError as error:
        raise BadSequenceFile(path, str(error), "it must be valid Python") from error
    if not any(name == NAME for name, _ in _assigned(tree)):
        theirs = any(isinstance(node, ast.FunctionDef) and node.name == "get_sequence" for node in tree.body)
        text = f"it has get_sequence(), but no {NAME}" if theirs else f"it has no {NAME}"
        raise BadSequenceFile(path, text)
    return tree


def _assigned(tree: ast.Module) -> Iterator[Tuple[str, int]]:
    for node in tree.body:
        targets: Sequence[ast.expr] = node.targets if isinstance(node, ast.Assign) else ()
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, node.lineno


def _at_name(path: str) -> str:
    line = next(line for name, line in _assigned(_parsed(path)) if name == NAME)
    return f"{path}:{line}"


def _files(path: str, seen: Dict[str, None]) -> List[str]:
    """The file, and those beside it that it imports, whichever way."""
    seen[path] = None
    tree = _parsed(path) if len(seen) == 1 else _tree(path)
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            beside = os.path.join(os.path.dirname(path), *name.split(".")) + ".py"
            if beside not in seen and os.path.isfile(beside):
                _files(beside, seen)
    return list(seen)


def _tree(path: str) -> ast.Module:
    try:
        with open(path, "rb") as file:
            return ast.parse(file.read())
    except (SyntaxError, ValueError):  # importing it tells
        return ast.Module(body=[], type_ignores=[])


def _takes_inputs(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a compiled one nothing is known
        return False
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty for p in parameters) > 1


def _place(trace: Any, path: str) -> int:
    """The last line of the file that the error passed; 0: none."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(trace)
        if os.path.abspath(frame.filename) == os.path.abspath(path)
    ]
    return (lines[-1] or 0) if lines else 0


def _line_of(function: Any) -> int:
    return int(getattr(getattr(function, "__code__", None), "co_firstlineno", 1))
