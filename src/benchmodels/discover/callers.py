"""Where in the user's code something happens, read from the stack. No frame is kept."""

from __future__ import annotations

import dis
import inspect
import os
import sys
import sysconfig
from functools import lru_cache
from types import CodeType, FrameType, FunctionType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from benchmodels.hooks.import_watch import class_attribute, is_a
from benchmodels.notebooks import OPENED
from benchmodels.types import Details, Module

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUR_FOLDERS = (os.path.join(_HERE, ""), os.path.join(os.path.dirname(_HERE), "benchprobe", ""))


@lru_cache(maxsize=10_000)
def is_library(file: str) -> bool:
    """Whether a source file belongs to Python, an installed package or us, or is no file at all."""
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
    """Recognised by the metadata that installers write, whatever the folder's name (`pip install --target`)."""
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


def own_modules() -> List[str]:
    """The source files of the user's own modules that were imported."""
    files = [getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name != "__main__"]
    own = {os.path.abspath(file) for file in files if isinstance(file, str) and not is_library(file)}
    return sorted(filter(os.path.isfile, own))  # some modules of torch name files that are not there


def place_of_call(script: str, frame: Optional[FrameType], without: Any = None) -> Optional[Details]:
    """File and line of the innermost frame of the script, from `frame` outwards; else of any file of the user's.

    `without`: skip `__init__` frames of this object, since they are not where it is made.
    """
    other: Optional[Details] = None
    while frame is not None:
        code = frame.f_code
        in_script = code.co_filename == script
        counts = in_script or (other is None and not is_library(code.co_filename))
        if counts and (without is None or code.co_name != "__init__" or first_argument(frame) is not without):
            other = _place(code.co_filename, frame.f_lineno)
            if in_script:
                return other
        frame = frame.f_back
    return other


def _place(file: str, line: int) -> Details:
    """Of a notebook, the cell and the line in it."""
    notebook = OPENED.get(file)
    return {"file": file, "line": line} if notebook is None else {"file": file, **notebook.place(line)._asdict()}


def first_argument(frame: FrameType) -> Any:
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None


class ForwardCall(NamedTuple):
    """A direct call of a `forward` method. `arguments` None: they were reassigned before we could read them."""

    module: Module
    caller: Optional[FrameType]
    arguments: Optional[Tuple[Tuple[Any, ...], Dict[str, Any]]]


def outermost_forward(frame: Optional[FrameType], module_class: type) -> Optional[ForwardCall]:
    """The outermost `forward` of a module on the stack, while it makes its first call of a sub-module."""
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
    """Compares by location: the function's code may have been swapped while it ran."""
    function = class_attribute(owner, "forward")
    while is_a(function, FunctionType):
        own = function.__code__
        if (own.co_filename, own.co_firstlineno, own.co_name) == (code.co_filename, code.co_firstlineno, code.co_name):
            return True
        function = vars(function).get("__wrapped__")
    return False


def _arguments(frame: FrameType) -> Optional[Tuple[Tuple[Any, ...], Dict[str, Any]]]:
    code, values = frame.f_code, frame.f_locals
    names, rest, more = inspect.getargs(code)
    parameters = {*names, rest, more}
    if parameters & {*code.co_cellvars}:
        return None
    stored = ("STORE_FAST", "DELETE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST")
    for instruction in dis.get_instructions(code):
        if instruction.offset >= frame.f_lasti:
            break
        stores = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
        if instruction.opname in stored and parameters.intersection(stores):
            return None
    args = tuple(values[name] for name in names[1 : code.co_argcount])
    kwargs = {name: values[name] for name in names[code.co_argcount :]}
    return (*args, *(values[rest] if rest else ())), {**kwargs, **(values[more] if more else {})}
