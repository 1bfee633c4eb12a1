"""A Python script as a target: its instrumented loop is measured."""

from __future__ import annotations

import ast
import os
import shutil
import sys
import tokenize
from pathlib import Path

from benchwright.domain.benchmark import Benchmark, Script
from benchwright.domain.errors import InvalidInput
from benchwright.sources.base import SourceOptions


class ScriptSource:
    """Reads one script as one benchmark."""

    name = "script"

    def recognises(self, target: str) -> bool:
        return target.endswith(".py") and os.path.isfile(target)

    def read(self, target: str, options: SourceOptions) -> list[Benchmark]:
        path = Path(target).absolute()
        if options.as_ is None and not uses_probe(path):
            raise InvalidInput(
                "no loop to measure: it does not import benchprobe",
                where=target,
                remedy=f"put iterate() around its loop, or measure it as a command: benchwright run -- python {target}",
            )
        python = options.python or default_python()
        workload = Script(path=str(path), args=options.script_args, cwd=options.cwd or os.getcwd(), python=python)
        return [Benchmark(name=path.name, workload=workload, source=target, metrics=options.metrics)]


def uses_probe(path: Path) -> bool:
    """Whether the script imports benchprobe; InvalidInput if it is no Python."""
    try:
        with tokenize.open(path) as handle:
            tree = ast.parse(handle.read(), filename=str(path))
    except SyntaxError as error:
        raise InvalidInput(
            f"is not valid Python: {error.msg}",
            where=str(path),
            line=error.lineno,
            column=error.offset,
            text=error.text,
        ) from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"is not readable as Python: {error}", where=str(path), remedy="check the file") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(a.name.split(".")[0] == "benchprobe" for a in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "benchprobe":
            return True
    return False


def default_python() -> str:
    """The interpreter a shell would start for `python`, since that is where the user's packages are."""
    return shutil.which("python") or shutil.which("python3") or sys.executable
