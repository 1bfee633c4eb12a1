"""Runs a script in this process as `python script.py ARGS` would: its `__main__`, its path, its exit code, its tracebacks."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import io
import linecache
import os
import sys
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, List, Optional, Sequence, Set

from benchmodels.notebooks import OPENED, display, is_notebook, read_notebook
from benchmodels.packages import PackageModule, become_module, find_own_package, module_of

_MAIN: List[
    ModuleType
] = []  # what a script made lasts until the process ends, even if `__main__` is another module by then
OUR_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")


def run_script(path: str, args: Sequence[str]) -> int:
    """Returns 0 when the script has ended. Its exceptions, SystemExit too, are passed on to the interpreter, which shows a
    traceback without our frames. Returns 2 if the file cannot be read, with the interpreter's own message.
    """
    absolute = os.path.abspath(path)
    try:
        with io.open_code(absolute) as file:
            source = file.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file '{absolute}': [Errno {error.errno}] {error.strerror}", file=sys.stderr
        )
        return 2
    if is_notebook(absolute):
        try:
            OPENED[absolute] = read_notebook(source)
        except ValueError as error:
            print(f"{absolute}: {error}", file=sys.stderr)
            return 2
        source = OPENED[absolute].source.encode()
    sys.argv = [path, *args]
    module = None if is_notebook(absolute) else module_of(absolute, source)
    _set_first_folder(absolute, module)
    main = _main_module(absolute)
    if module is not None:
        become_module(main, module)
    if is_notebook(absolute):
        main.__dict__["display"] = display
    sys.setrecursionlimit(sys.getrecursionlimit() + _depth())  # not counting the frames below the script
    try:
        if module is not None:
            importlib.import_module(module.package)
        exec(_compiled(source, absolute), main.__dict__)  # noqa: S102 it is what was asked for
    except SystemExit:
        raise
    except BaseException:
        _show_without_our_frames()
        raise
    return 0


def _depth() -> int:
    """The depth of the stack below the script: frames, and the two calls of `exec`, which count, too."""
    frame: Optional[FrameType] = sys._getframe(1)
    depth = 2
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    return depth


def script_name(path: str) -> str:
    """The file name in frames of the script."""
    return os.path.abspath(path)


def _set_first_folder(script: str, module: Optional[PackageModule]) -> None:
    """`-m` puts the current folder first on the path; a script has its own there, a module that of its package."""
    if not getattr(sys.flags, "safe_path", False) and sys.path:
        sys.path[0] = os.path.dirname(os.path.realpath(script)) if module is None else module.root
        if module is None:
            find_own_package(script)


def _main_module(script: str) -> ModuleType:
    main = ModuleType("__main__")
    main.__file__ = script
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", script)
    main.__dict__.update(__builtins__=sys.modules["builtins"], __annotations__={}, __cached__=None)
    sys.modules["__main__"] = main
    _MAIN.append(main)
    return main


def _compiled(source: bytes, script: str) -> CodeType:
    code: CodeType = compile(source, script, "exec", dont_inherit=True)
    try:
        # Keep the source of a model's `forward` as it runs, even if the file changes or disappears.
        text = importlib.util.decode_source(source)
        linecache.cache[script] = (len(source), None, text.splitlines(True), script)
    except (SyntaxError, UnicodeError):
        pass
    return code


def _show_without_our_frames() -> None:
    """Leaves our frames out of the interpreter's final traceback."""
    shows = sys.excepthook

    def show(kind: Any, error: BaseException, traceback: Optional[TracebackType]) -> None:
        sys.excepthook = shows
        strip(error)
        sys.last_traceback = error.__traceback__
        shows(kind, error, error.__traceback__)

    sys.excepthook = show


def strip(error: BaseException) -> None:
    """Removes our frames, and those of the interpreter that started us, from the traceback of `error` and its causes."""
    waiting: List[BaseException] = [error]
    seen: Set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _stripped(one.__traceback__)
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        waiting += getattr(one, "exceptions", ()) or ()


def _stripped(traceback: Optional[TracebackType]) -> Optional[TracebackType]:
    kept: List[TracebackType] = []
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        started_us = not kept and file in ("<frozen runpy>", getattr(sys.modules.get("runpy"), "__file__", None))
        if not started_us and not file.startswith(OUR_FOLDER):
            kept.append(traceback)
        traceback = traceback.tb_next
    for one, following in zip(kept, [*kept[1:], None]):
        one.tb_next = following
    return kept[0] if kept else None
