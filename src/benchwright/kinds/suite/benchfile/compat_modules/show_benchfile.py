"""Runs the benchfile.py named on the command line and prints, as one JSON object, what it sets.

Started with benchwright's own Python in the benchmark's folder; this file's folder comes first on the path, so that
`milabench.pack` is the one beside it.
"""

from __future__ import annotations

import inspect
import json
import os
import runpy
import sys
import traceback

ATTRIBUTES = ("base_requirements", "prepare_script", "main_script")


def main(path: str) -> None:
    told = sys.stdout
    sys.stdout = sys.stderr  # what the benchfile prints is not the answer
    sys.path.insert(1, os.path.dirname(path))
    try:
        answer = about(runpy.run_path(path, run_name="benchfile").get("__pack__"))
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}", "line": line_of(error, path)}
    print(json.dumps(answer), file=told, flush=True)


def about(pack: object) -> dict[str, object]:
    """What a pack's class says."""
    if not inspect.isclass(pack):
        return {"error": "it sets __pack__ to no class", "line": None}
    found: dict[str, object] = {}
    for name in ATTRIBUTES:
        value = inspect.getattr_static(pack, name, None)
        if isinstance(value, (list, tuple)):
            value = [str(item) for item in value]
        elif value is not None and not inspect.isroutine(value) and not isinstance(value, property):
            value = str(value)
        if value is None or isinstance(value, (str, list)):
            found[name] = value
    methods = {}
    for cls in reversed(pack.__mro__):
        if not cls.__module__.startswith("milabench") and cls is not object:
            methods.update({name: first_line(member) for name, member in vars(cls).items() if is_code(member)})
    return {"attributes": found, "methods": methods}


def is_code(member: object) -> bool:
    return inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))


def first_line(member: object) -> int | None:
    function = getattr(member, "fget", None) or getattr(member, "__func__", member)
    code = getattr(function, "__code__", None)
    return code.co_firstlineno if code is not None else None


def line_of(error: BaseException, path: str) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


if __name__ == "__main__":
    main(sys.argv[1])
