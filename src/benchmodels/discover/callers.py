"""Where in the user's code something happens: frames of the stack, never kept."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, Dict, NamedTuple, Optional, Set, Tuple

from benchmodels.hooks.looking import class_attribute, is_a
from benchmodels.types import Details, Module

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUR_FOLDERS = (os.path.join(_HERE, ""), os.path.join(os.path.dirname(_HERE), "benchprobe", ""))


class SourcePlace(NamedTuple):
    """A line of the user's source."""

    file: str
    line: int

    def as_dict(self) -> Details:
        return {"file": self.file, "line": self.line}


@lru_cache(maxsize=10_000)
def is_library(file: str) -> bool:
    """Whether a source file is the interpreter's, an installed package's, ours or nobody's."""
    if file.startswith("<") or file.startswith(OUR_FOLDERS):
        return True
    parts = file.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        return True
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.__file__)}
    if any(file.startswith(os.path.join(folder, "")) for folder in standard):
        return True
    return any(_is_installed_into(entry) for entry in sys.path if entry and file.startswith(os.path.join(entry, "")))


@lru_cache(maxsize=1000)
def _is_installed_into(folder: str) -> bool:
    """By what installers leave beside packages, also in a folder of another name (`pip install --target`)."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


def place_of_call(script: str, frame: Optional[FrameType], without: Any = None) -> Optional[SourcePlace]:
    """The innermost line of the script on the stack from `frame` on; else that of any file of the user's.

    `without`: an object whose own `__init__` frames do not count, since they are not where it is made.
    """
    other: Optional[SourcePlace] = None
    while frame is not None:
        code = frame.f_code
        in_script = code.co_filename == script
        counts = in_script or (other is None and not is_library(code.co_filename))
        if counts and (without is None or not _is_init_of(frame, without)):
            other = SourcePlace(code.co_filename, frame.f_lineno)
            if in_script:
                return other
        frame = frame.f_back
    return other


def _is_init_of(frame: FrameType, made: Any) -> bool:
    return frame.f_code.co_name == "__init__" and first_argument(frame) is made


def first_argument(frame: FrameType) -> Any:
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


class ForwardCall(NamedTuple):
    """A method `forward` that was called by itself. `arguments` None: they were changed before it could be seen."""

    module: Module
    caller: Optional[FrameType]
    arguments: Optional[Tuple[Tuple[Any, ...], Dict[str, Any]]]


def outermost_forward(frame: Optional[FrameType], module_class: type) -> Optional[ForwardCall]:
    """The outermost `forward` of a module on the stack, seen while it makes its first call of a part."""
    found: Optional[FrameType] = None
    while frame is not None:
        if frame.f_code.co_name == "forward":
            owner = first_argument(frame)
            if is_a(owner, module_class) and _is_code_of(frame.f_code, type(owner)):
                found = frame
        frame = frame.f_back
    if found is None:
        return None
    return ForwardCall(first_argument(found), found.f_back, _arguments(found))


def _is_code_of(code: CodeType, owner: type) -> bool:
    """By where it stands: a function may have been given other code while it ran."""
    function = class_attribute(owner, "forward")
    while is_a(function, FunctionType):
        own = function.__code__
        if (own.co_filename, own.co_firstlineno, own.co_name) == (code.co_filename, code.co_firstlineno, code.co_name):
            return True
        function = vars(function).get("__wrapped__")
    return False


def _arguments(frame: FrameType) -> Optional[Tuple[Tuple[Any, ...], Dict[str, Any]]]:
    code = frame.f_code
    positional = code.co_varnames[1 : code.co_argcount]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    has_rest, has_more = bool(code.co_flags & 0x04), bool(code.co_flags & 0x08)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + has_rest + has_more]
    if code.co_cellvars and set(code.co_cellvars) & set(names):
        return None
    stored = ("STORE_FAST", "DELETE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
    for instruction in dis.get_instructions(code):
        if instruction.offset >= frame.f_lasti:
            break
        if instruction.opname in stored and _names_of(instruction.argval) & set(names):
            return None
    values = frame.f_locals
    args = tuple(values[name] for name in positional)
    kwargs = {name: values[name] for name in keywords}
    if has_rest:
        args += tuple(values[names[code.co_argcount + code.co_kwonlyargcount]])
    if has_more:
        kwargs.update(values[names[-1]])
    return args, kwargs


def _names_of(argument: Any) -> Set[Any]:
    return set(argument) if isinstance(argument, tuple) else {argument}
