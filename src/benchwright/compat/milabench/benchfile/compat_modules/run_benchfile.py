"""Runs a benchfile.py for benchwright: says what it sets, or does a phase of it.

Started with benchwright's own Python in the benchmark's folder; this file's folder comes first on the path, so that
`milabench` is the one beside it. The request is a JSON line on standard input; questions and the answer are JSON lines on the
original standard output, and whatever the benchfile prints goes to standard error.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import runpy
import sys
import traceback
from importlib import import_module
from typing import Any

ATTRIBUTES = ("base_requirements", "prepare_script", "main_script")


def main() -> None:
    answer_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    folder = os.path.dirname(request["benchfile"])
    sys.path.insert(1, folder)
    guard: Any = import_module("write_guard")
    guard.refuse_writes_outside([folder, *request.get("config", {}).get("dirs", {}).values()])
    try:
        answer = answered(request, answer_to)
    except BaseException as error:  # also SystemExit: the benchfile's, not ours
        answer = {"error": f"{type(error).__name__}: {error}", "line": line_of(error, request["benchfile"])}
        answer["unknown"] = unknown_part(error)
    answer_to.write(json.dumps(answer, default=str) + "\n")
    answer_to.flush()
    os._exit(0)  # whatever threads and handlers the benchfile left


def answered(request: dict[str, Any], questions: Any) -> dict[str, Any]:
    pack_class = runpy.run_path(request["benchfile"], run_name="benchfile").get("__pack__")
    if not inspect.isclass(pack_class):
        raise TypeError("it sets __pack__ to no class")
    if request["phase"] == "about":
        return about(pack_class)
    actions: Any = import_module("milabench.actions")
    actions.variables, actions.options = request["variables"], request["config"]["system"].get("options") or {}
    actions.questions, actions.answers = questions, sys.stdin
    make: Any = pack_class
    pack = make(request["config"])
    pack.phase = request["phase"]
    if request["phase"] == "run":
        return {"processes": processes(pack, request["devices"])}
    asyncio.run(pack.install() if request["phase"] == "install" else pack.prepare())
    return {"done": True}


def processes(pack: Any, devices: list[int]) -> list[dict[str, Any]]:
    """Processes that its run starts on each device, or as often as the entry's `plan` says."""
    actions: Any = import_module("milabench.actions")
    commands: Any = import_module("milabench.commands")
    packs: Any = import_module("milabench.pack")
    runs_itself = type(pack).run is not packs.Package.run
    plan = commands.VoidCommand(pack) if runs_itself else pack.build_run_plan()
    if not isinstance(plan, commands.Command):
        raise TypeError(f"build_run_plan gave {plan!r:.80}, which is no command of milabench")
    gpus, method = [{"device": device} for device in devices], pack.config["plan"]
    plan = commands.PerGPU(plan, gpus) if method["method"] == "per_gpu" else commands.NJobs(plan, method["n"], gpus)
    planned: list[dict[str, Any]] = []
    actions.planned = planned
    if not runs_itself:
        return [actions.described("execute", argv, owner, options) for owner, argv, options in plan.commands()]
    for owner in plan.packs():
        asyncio.run(owner.run())
    return planned


def about(pack: Any) -> dict[str, Any]:
    """Attributes of a pack's class."""
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


def unknown_part(error: BaseException) -> str | None:
    """The name of the part of milabench whose absence is the error."""
    name, found = str(getattr(error, "name", "")), getattr(error, "obj", None)
    if isinstance(error, ModuleNotFoundError):
        part = name
    elif isinstance(error, ImportError):
        wanted = re.match(r"cannot import name '(\w+)'", str(error))
        part = f"{name}.{wanted[1]}" if wanted else name
    elif isinstance(error, AttributeError) and inspect.ismodule(found):
        part = f"{found.__name__}.{name}"
    elif isinstance(error, AttributeError) and inspect.isclass(found):
        part = f"{found.__module__}.{found.__name__}.{name}"
    else:
        return str(error) if type(error).__name__ == "NotKnown" else None
    return part if part.partition(".")[0] == "milabench" else None


def line_of(error: BaseException, path: str) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else None


if __name__ == "__main__":
    main()
